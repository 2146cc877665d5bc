"""What a caller must give besides what is always required, where an object has several forms.

Above: whole_schema.py, which joins the parts of each form. Below: keywords.py. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from codegen.schemas.keywords import constant_of, properties_of, required_of

MAX_FORMS = 32
"""Of an object with more forms nothing is said: every two of them are compared."""
_MAX_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Need:
    """The keys that one form needs; `tag` is the key whose value tells the form, with that value, if there is one."""

    keys: tuple[str, ...]
    tag: tuple[str, str | int] | None = None


def needs_of(forms: list[dict[str, Any]], always: list[str]) -> tuple[Need, ...]:
    """Return what the forms of an object, two or more, need besides the keys that are required anyway.

    With a tag, that is one need for each form that has any; without, those of which one is enough, none if a form needs
    nothing.
    """
    needed = [required_of(form) for form in forms]
    shared = set(always).union(set.intersection(*map(set, needed)))
    rests = [tuple(key for key in keys if key not in shared) for keys in needed]
    tag = _tag_of(forms)
    if tag is not None:
        key, values = tag
        tagged = [
            Need(tuple(other for other in rest if other != key), (key, value))
            for rest, value in zip(rests, values, strict=True)
        ]
        return tuple(need for need in tagged if need.keys)[:_MAX_SHOWN]
    sets = list(map(set, rests))
    fewest = [rest for rest, keys in zip(rests, sets, strict=True) if not any(other < keys for other in sets)]
    return tuple(map(Need, dict.fromkeys(fewest)))[:_MAX_SHOWN] if all(fewest) else ()


def _tag_of(forms: list[dict[str, Any]]) -> tuple[str, list[str | int]] | None:
    """Return the first key that has another constant in each form, with these; None if there is no such key."""
    for key in properties_of(forms[0]):
        found = [constant_of(properties_of(form).get(key)) for form in forms]
        values = [value for value in found if value is not None]
        if len(set(map(repr, values))) == len(forms):
            return key, values
    return None
