"""Class names for the objects of one tool, from where they stand in its schemas.

Above: closed_schema.py and generated_types.py. Each name begins with the function's, so tools of one
namespace do not share any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codegen.identifiers import class_name, identifier
from codegen.schemas.keywords import properties_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_LENGTH = 60


def assign_class_names(words: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return a distinct class name for each token: made of the function and the last word, or of the whole path."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for token, path in words.items():
        names[token] = _first_free(path, taken)
        taken.add(names[token])
    return names


def reference_words(reference: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words for the target of a reference: the last step of its pointer, if that is a word."""
    last = reference.rsplit("/", 1)[-1].rsplit(".", 1)[-1]
    name = identifier(last)
    if "/" not in reference or name.startswith("x_") or not words:
        return words
    return (words[0], name)


def branch_words(branch: Any, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words for a branch: those of its parent, and the constant by which it is told apart."""
    if isinstance(branch, dict):
        for subschema in properties_of(branch).values():
            if isinstance(subschema, dict) and isinstance(subschema.get("const"), str):
                return (*words, identifier(subschema["const"]))
    return words


def singular(word: str) -> str:
    """Return the name of one element of what `word` names."""
    if word.endswith("ies") and len(word) > len("ties"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return f"{word}_item"


def _first_free(path: tuple[str, ...], taken: set[str]) -> str:
    short = class_name(path[0], path[-1]) if len(path) > 1 else class_name(*path)
    for name in (short, class_name(*path)):
        if name not in taken and len(name) <= _MAX_LENGTH:
            return name
    stem = short[:_MAX_LENGTH]
    number = 2
    while f"{stem}{number}" in taken:
        number += 1
    return stem if stem not in taken else f"{stem}{number}"
