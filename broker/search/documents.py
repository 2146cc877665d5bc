"""A tool as what the index keeps of it: how much it says of each word.

Above: the index. Below: words.py and actions.py. The score is BM25F: every field counts by its weight and its length,
then the sum saturates, so that a word said ten times does not count ten times. Lengths are compared with fixed
typical lengths, not with averages of the catalog: a tool scores the same whatever else is connected.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, filterfalse, islice
from typing import TYPE_CHECKING, Any

from broker.search.acronyms import initials
from broker.search.actions import Action, action_of_tool
from broker.search.stop_words import stop_stems
from broker.search.words import written_words
from codegen.schemas.keywords import properties_of, required_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from broker.search.weights import Fields
    from codegen import ToolSpec

NAME_CHARACTERS = 300
DESCRIPTION_CHARACTERS = 4_000
PARAMETERS = 100
PARAMETER_CHARACTERS = 300
ENUM_VALUES = 20
PARAMETERS_CHARACTERS = 10_000
"""How much is read of all parameters of a tool together; the most of 6,586 real tools is 7,140."""

WORDS = 1_000
"""How many different words a tool is found by; the most of those real tools is 888."""

_INITIALS = 100

_NEGATION = re.compile(r"\b(?:can(?:'t|not)|do(?:es)?(?:n't| not)|instead|never|not (?:for|to be))\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"\s(?:(?<=\n)|(?<=[.!?]\s))\s*")


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


def read_tool(
    spec: ToolSpec, fields: Fields, stems: Callable[[Iterable[str]], list[str]], repeated: Callable[[str], list[str]]
) -> Document:
    """Read a definition; only the beginnings of very long texts count.

    Args:
        spec: The tool.
        fields: How its parts count.
        stems: Reads words as written.
        repeated: Reads a text that other tools of its server may have too, once.
    """
    name_words = written_words(spec.name[:NAME_CHARACTERS])
    title_text, server = (spec.title or "")[:NAME_CHARACTERS], spec.server[:NAME_CHARACTERS]
    summary, description = _sentences(spec.description[:DESCRIPTION_CHARACTERS])
    first_words = written_words(summary)
    name, title, first = stems(name_words), stems(written_words(title_text)), stems(first_words)
    takes, parameter_texts = _read_parameters(spec.input_schema, repeated)
    is_silent = stop_stems().__contains__
    sums: defaultdict[str, float] = defaultdict(float)
    for field, found in (
        (fields.name, name),
        (fields.title, title),
        (fields.server, repeated(server)),
        (fields.summary, first),
        (fields.description, stems(written_words(description))),
        (fields.parameters, list(chain.from_iterable(takes.values()))),
        (fields.parameter_texts, parameter_texts),
    ):
        worth = field.weight / (1 - field.length_share + field.length_share * len(found) / field.typical_words)
        for word in found:
            sums[word] += worth
    for letters in sorted(initials(title_text, server) | initials(summary))[:_INITIALS]:
        sums[letters] += fields.initials
    return Document(
        spec,
        {word: worth / (fields.saturation + worth) for word, worth in islice(sums.items(), WORDS)},
        frozenset(name),
        " | ".join([" ".join(["", *filterfalse(is_silent, part), ""]) for part in (name, title, first)]),
        action_of_tool(name_words, first_words, summary),
        frozenset(chain.from_iterable(takes.values())),
        tuple([frozenset(takes[name]) for name in required_of(spec.input_schema) if name in takes]),
    )


def _read_parameters(schema: Any, repeated: Callable[[str], list[str]]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the stems of each parameter's name, and those of what is said about all of them."""
    takes: dict[str, list[str]] = {}
    texts: list[str] = []
    left = PARAMETERS_CHARACTERS
    for name, about in _parameters(schema):
        if left <= 0:
            break
        takes[name] = repeated(name)
        texts += repeated(about)
        left -= len(name) + len(about)
    return takes, texts


def parameter_names(schema: Any) -> list[str]:
    """Return the names of the top-level parameters in a schema of any shape, at most a hundred."""
    return [name for name, _ in _parameters(schema)]


def _sentences(text: str) -> tuple[str, str]:
    text = text.strip()
    end = _SENTENCE_END.search(text)
    if end is None:
        return text, ""
    first, rest = text[: end.start()], text[end.end() :]
    if _NEGATION.search(rest):  # "Does not list queues; use queue_list instead" has the words of another tool
        rest = " ".join(sentence for sentence in _SENTENCE_END.split(rest) if not _NEGATION.search(sentence))
    return first, rest


def _parameters(schema: Any) -> Iterator[tuple[str, str]]:
    """Each top-level parameter with what is said about it. The schema is any JSON value a server may send."""
    for name, about in islice(properties_of(schema).items(), PARAMETERS):
        texts = []
        if isinstance(about, dict):
            values = about.get("enum")
            texts = [about.get("description"), *(values[:ENUM_VALUES] if isinstance(values, list) else ())]
        yield name[:NAME_CHARACTERS], " ".join([t[:PARAMETER_CHARACTERS] for t in texts if isinstance(t, str)])
