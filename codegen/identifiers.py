"""Makes a Python name from any string: legal, unique among its neighbours and harmless in a stub.

Above: names of namespaces, functions, parameters and classes. The names given in come from servers.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LENGTH = 64

# Names that annotations in a stub use: anything else of that name would change what they mean.
ANNOTATION_NAMES = frozenset(
    "Any Literal NotRequired Required TypeAlias TypedDict bool dict float int list str".split()  # noqa: SIM905
)
_KEYWORDS = frozenset(keyword.kwlist) | {"self", "cls", "__debug__"}
_NO_FIELDS = ANNOTATION_NAMES | frozenset(keyword.kwlist)
_RESERVED = ANNOTATION_NAMES | _KEYWORDS
_NOT_WORD = re.compile(r"[^0-9A-Za-z]+")
# Letters of these scripts are not mistaken for Latin ones.
_UNMISTAKABLE = ("CJK UNIFIED", "HIRAGANA", "KATAKANA LETTER", "HANGUL SYLLABLE")


def assign_identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return a distinct legal identifier for each name of a namespace or function.

    A name that is already a plain identifier keeps it. Of names that would share one, each that had to be
    altered gets a suffix made from its own characters, so a name changes only when a name that collides
    with it comes or goes, never with order or with the rest.
    """
    return _assigned(names, _RESERVED)


def assign_parameters(keys: Iterable[str]) -> dict[str, str]:
    """Return a distinct parameter name for each JSON key, by the rule of `assign_identifiers`.

    Parameters are reached by keyword only, so `list` and `type` are as good as any other name.
    """
    return _assigned(keys, _KEYWORDS)


def _assigned(names: Iterable[str], reserved: frozenset[str]) -> dict[str, str]:
    distinct = sorted(set(names))
    by_identifier: defaultdict[str, list[str]] = defaultdict(list)
    for name in distinct:
        by_identifier[identifier(name, reserved=reserved)].append(name)
    assigned = {
        sharers[0] if len(sharers) == 1 else candidate: candidate
        for candidate, sharers in by_identifier.items()
        if len(sharers) == 1 or candidate in sharers
    }
    taken = set(assigned.values())
    for name in distinct:
        if name not in assigned:
            assigned[name] = _suffixed(identifier(name, reserved=reserved), name, taken)
            taken.add(assigned[name])
    return assigned


def identifier(name: str, *, reserved: frozenset[str] = _RESERVED) -> str:
    """Return the identifier of `name` alone; two names may share one."""
    if name.isascii() and name.isidentifier() and not name.startswith("__") and len(name) <= MAX_LENGTH:
        return f"{name}_" if name in reserved else name
    words = re.sub(r"_+", "_", "".join(map(_transliterated, name[: 4 * MAX_LENGTH]))).strip("_")
    if words[:1].isdigit():
        words = f"_{words}"
    if len(words) > MAX_LENGTH:
        words = f"{words[: MAX_LENGTH - 7]}_{_fingerprint(name)}"
    if not words.isidentifier():
        return "x_" + _fingerprint(name)
    return f"{words}_" if words in reserved else words


def class_name(*words: str) -> str:
    """Return the words, which are identifiers, as one name in CapWords."""
    parts = [part for word in words for part in word.split("_") if part]
    joined = "".join(part[0].upper() + part[1:] for part in parts)
    if not joined or joined[0].isdigit():
        return f"T{joined}"
    return f"{joined}_" if joined in _RESERVED else joined


def is_plain_key(key: str) -> bool:
    """Tell whether `key` may be a field of a class body without changing what the annotations there mean."""
    return key.isascii() and key.isidentifier() and key not in _NO_FIELDS and not key.startswith("__")


def _transliterated(character: str) -> str:
    if not character.isascii():
        is_itself = unicodedata.normalize("NFKC", character) == character  # which is what Python reads
        if is_itself and unicodedata.name(character, "").startswith(_UNMISTAKABLE):
            return character
        character = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or "_"
    return _NOT_WORD.sub("_", character)


def _suffixed(candidate: str, name: str, taken: set[str]) -> str:
    lengths = (4, 8, 16, 32, 64)
    suffixed = [f"{candidate.rstrip('_')}_{_fingerprint(name, length)}" for length in lengths]
    return next(name for name in suffixed if name not in taken)


def _fingerprint(name: str, length: int = 6) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:length]
