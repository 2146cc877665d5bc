"""Shows names and texts of servers and scripts to a person who decides: nothing hidden, nothing that looks alike.

Above: whatever asks a person. Below: nothing. Text meant for reading drops what is invisible; here it is shown as an
escape, because somebody is about to judge by it.
"""

from __future__ import annotations

import unicodedata

ESCAPE_CHARACTERS = 10
"""The longest escape of one character."""

_MARK = "…"
# Letters and a symbol that show nothing.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def shown_name(name: str, limit: int = 130) -> str:
    """Return a name in ASCII, all else as escapes: letters of two scripts may look the same."""
    return _bounded(name[: 2 * limit].encode("unicode_escape").decode("ascii"), limit)


def shown_text(text: str, limit: int) -> str:
    """Return text with its letters, on one line; control, invisible and direction-changing characters as escapes."""
    cut = _all_escaped(text[: 2 * limit])
    return _bounded(cut, limit) if len(text) <= 2 * limit else _bounded(cut + _MARK, limit)


def shown_ends(text: str, limit: int) -> str:
    """Return text as `shown_text` does; a longer one as its beginning and end, with its length in between.

    What matters may be at either end, as a command behind a harmless one, or a file name behind its folders.
    """
    if len(text) <= limit and len(whole := _all_escaped(text)) <= limit:
        return whole
    head, tail = limit - limit // 3, limit // 3
    return f"{_all_escaped(text[:head])[:head]} [… {len(text):,} characters …] {_all_escaped(text[-tail:])[-tail:]}"


def _all_escaped(text: str) -> str:
    return text if text.isascii() and text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    category = unicodedata.category(character)
    if character == " " or (category[0] not in "CZ" and category != "Mn" and character not in _BLANK):
        return character
    return character.encode("unicode_escape").decode("ascii") if ord(character) > ord(" ") else repr(character)[1:-1]


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - len(_MARK)] + _MARK
