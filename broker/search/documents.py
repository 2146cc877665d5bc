"""A tool as what the index keeps of it: how much it says of each word.

Above: the index. Below: words.py and actions.py. The score is BM25F: every field counts by its weight and its length,
then the sum saturates, so that a word said ten times does not count ten times. Lengths are compared with fixed
typical lengths, not with averages of the catalog: a tool scores the same whatever else is connected.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from broker.search.acronyms import initials
from broker.search.actions import Action, action_of_tool
from broker.search.stop_words import stop_stems
from codegen.schemas.keywords import properties_of, required_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from broker.search.weights import Fields
    from codegen import ToolSpec

NAME_CHARACTERS = 300
DESCRIPTION_CHARACTERS = 4_000
PARAMETERS = 100
PARAMETER_CHARACTERS = 300
ENUM_VALUES = 20

_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_NEGATION = re.compile(r"\b(?:can(?:'t|not)|do(?:es)?(?:n't| not)|instead|never|not (?:for|to be))\b", re.IGNORECASE)
_FIRST_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")


@dataclass(frozen=True, slots=True)
class Document:
    """One tool as it is indexed.

    Attributes:
        spec: The tool.
        impacts: What the tool says of each stem, between 0 and 1.
        name_stems: The stems of its name.
        head: The stems of name, title and first sentence in order, between spaces, to find neighbours in.
        action: What it does to what.
        takes: The stems of its parameters' names.
        needs: Those of each parameter that it requires.
    """

    spec: ToolSpec
    impacts: Mapping[str, float]
    name_stems: frozenset[str]
    head: str
    action: Action
    takes: frozenset[str]
    needs: tuple[frozenset[str], ...]


def read_tool(spec: ToolSpec, fields: Fields, stems: Callable[[str], list[str]]) -> Document:
    """Read a definition; only the beginnings of very long texts count. `stems` reads a text."""
    name = stems(spec.name[:NAME_CHARACTERS])
    title = stems((spec.title or "")[:NAME_CHARACTERS])
    summary, description = _sentences(spec.description[:DESCRIPTION_CHARACTERS])
    first = stems(summary)
    parameters = dict(_parameters(spec.input_schema))
    takes = stems(" ".join(parameters))
    silent = stop_stems()
    sums: defaultdict[str, float] = defaultdict(float)
    for field, found in (
        (fields.name, name),
        (fields.title, title),
        (fields.server, stems(spec.server[:NAME_CHARACTERS])),
        (fields.summary, first),
        (fields.description, stems(description)),
        (fields.parameters, takes),
        (fields.parameter_texts, stems(" ".join(parameters.values()))),
    ):
        worth = field.weight / (1 - field.length_share + field.length_share * len(found) / field.typical_words)
        for word in found:
            sums[word] += worth
    title_text = (spec.title or "")[:NAME_CHARACTERS]
    for letters in initials(title_text, spec.server[:NAME_CHARACTERS]) | initials(summary):
        sums[letters] += fields.initials
    return Document(
        spec,
        {word: worth / (fields.saturation + worth) for word, worth in sums.items()},
        frozenset(name),
        " | ".join(" ".join(["", *(word for word in part if word not in silent), ""]) for part in (name, title, first)),
        action_of_tool(spec.name[:NAME_CHARACTERS], summary),
        frozenset(takes),
        tuple(frozenset(stems(name)) for name in required_of(spec.input_schema) if name in parameters),
    )


def parameter_names(schema: Any) -> list[str]:
    """Return the names of the top-level parameters in a schema of any shape, at most a hundred."""
    return [name for name, _ in _parameters(schema)]


def _sentences(text: str) -> tuple[str, str]:
    first, _, rest = _FIRST_SENTENCE.sub("\0", text.strip(), count=1).partition("\0")
    if _NEGATION.search(rest):  # "Does not list queues; use queue_list instead" has the words of another tool
        rest = " ".join(sentence for sentence in _SENTENCES.split(rest) if not _NEGATION.search(sentence))
    return first, rest


def _parameters(schema: Any) -> Iterator[tuple[str, str]]:
    """Each top-level parameter with what is said about it. The schema is any JSON value a server may send."""
    for name, about in islice(properties_of(schema).items(), PARAMETERS):
        texts = []
        if isinstance(about, dict):
            values = about.get("enum")
            texts = [about.get("description"), *(values[:ENUM_VALUES] if isinstance(values, list) else ())]
        yield name[:NAME_CHARACTERS], " ".join(t[:PARAMETER_CHARACTERS] for t in texts if isinstance(t, str))
