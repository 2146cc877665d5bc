"""Reads the requests of servers for a person's input as forms: bounded, and only what can be shown as it is meant.

Above: upstream_requests.py. Below: forms.py, addresses.py. What cannot be shown whole and unambiguously is no form, and
nothing of a schema is kept but what is named here: no patterns, no references, no objects in objects.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from broker.authorization.addresses import checked_url
from broker.authorization.forms import Form, FormField, is_finite
from broker.authorization.shown import shown_text
from broker.calls.json_schema import TOO_LARGE, first_fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.authorization.forms import Kind

_Word: TypeAlias = Literal["enum", "enumNames", "oneOf", "anyOf"]

MAX_FIELDS = 20
MAX_OPTIONS = 100
MESSAGE_CHARACTERS = 2_000
FORM_CHARACTERS = 50_000
"""The fields and options of a form, as JSON: a person reads them."""

_OPTIONS = f"a field has no list of at most {MAX_OPTIONS} options"
_MESSAGE_LINES = 20
_TITLE_CHARACTERS = 80
_TEXT_CHARACTERS = 300
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_KINDS: Mapping[str, Kind] = {"string": "text", "integer": "integer", "number": "number", "boolean": "yes or no"}
_BOUNDS: Mapping[str, type | tuple[type, ...]] = {
    "minLength": int,
    "maxLength": int,
    "minimum": (int, float),
    "maximum": (int, float),
    "minItems": int,
    "maxItems": int,
}
_FORMATS = frozenset({"email", "uri", "date", "date-time"})


@dataclass(frozen=True, slots=True)
class _Options:
    """What there is to choose from.

    Attributes:
        word: How the server wrote it: which keyword has the titles; `enum` has none.
        pairs: The values, each with its title.
    """

    word: _Word
    pairs: tuple[tuple[str, str], ...]

    @property
    def of_one(self) -> dict[str, Any]:
        """The schema of a field with one of them: clients of 2025-06-18 know `enumNames` alone."""
        values = [value for value, _ in self.pairs]
        match self.word:
            case "enum":
                return {"type": "string", "enum": values}
            case "enumNames":
                return {"type": "string", "enum": values, "enumNames": [title for _, title in self.pairs]}
        return {"type": "string", "oneOf": self._titled}

    @property
    def of_many(self) -> dict[str, Any]:
        """The schema of each item of a field with several of them, which only newer clients know."""
        return self.of_one if self.word == "enum" else {"anyOf": self._titled}

    @property
    def _titled(self) -> list[dict[str, str]]:
        return [{"const": value, "title": title} for value, title in self.pairs]


class FormError(ValueError):
    """A request of a server cannot be shown as a form; the text says why, in our words."""


def form_of(server: str, tool: str, params: Mapping[str, Any], *, timeout_seconds: float, key: str = "") -> Form:
    """Read the parameters of an `elicitation/create` of a server, which it calls by a key since 2026-07-28.

    Raises:
        FormError: They cannot be shown.
    """
    message = params.get("message")
    if not isinstance(message, str):
        raise FormError("it has no message")
    lines = _lines(message)
    key = key if _NAME.fullmatch(key) else ""
    if params.get("mode") == "url":
        try:
            url = checked_url(params.get("url"))
        except ValueError as error:
            raise FormError(str(error)) from None
        return Form(server, tool, lines, url=url, timeout_seconds=timeout_seconds, key=key)
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or len(properties) > MAX_FIELDS:
        raise FormError(f"it has no list of at most {MAX_FIELDS} fields")
    required = schema.get("required", []) if isinstance(schema, dict) else []
    names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    fields = tuple(_field(name, one, is_required=name in names) for name, one in properties.items())
    form = Form(server, tool, lines, fields, timeout_seconds=timeout_seconds, key=key)
    if len(json.dumps(form.schema, ensure_ascii=False)) > FORM_CHARACTERS:
        raise FormError(f"it is longer than {FORM_CHARACTERS:,} characters")
    return form


def _lines(message: str) -> tuple[str, ...]:
    lines = message[:MESSAGE_CHARACTERS].splitlines() or [""]
    is_cut = len(lines) > _MESSAGE_LINES or len(message) > MESSAGE_CHARACTERS
    shown = [shown_text(line, MESSAGE_CHARACTERS) for line in lines[:_MESSAGE_LINES]]
    return (*shown, "…") if is_cut else tuple(shown)


def _field(name: Any, said: Any, *, is_required: bool) -> FormField:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(said, dict):
        raise FormError("a field has no plain name")
    kind, type_said, options = _kind(name, said)
    schema = _described(said) | type_said
    default = said.get("default")
    if default is not None and _is_usable(default, schema):
        schema["default"] = default
    return FormField(name, kind, schema, options, is_required)


def _described(said: dict[str, Any]) -> dict[str, Any]:
    """Return what a field may say of itself beside its type: texts, bounds and format."""
    schema: dict[str, Any] = {
        key: shown_text(text, limit)
        for key, limit in (("title", _TITLE_CHARACTERS), ("description", _TEXT_CHARACTERS))
        if isinstance(text := said.get(key), str)
    }
    schema |= {
        key: said[key]
        for key, kind in _BOUNDS.items()
        if isinstance(said.get(key), kind) and not isinstance(said[key], bool) and is_finite(said[key])
    }
    if isinstance(said.get("format"), str) and said["format"] in _FORMATS:
        schema["format"] = said["format"]
    return schema


def _kind(name: str, said: dict[str, Any]) -> tuple[Kind, dict[str, Any], tuple[tuple[str, str], ...]]:
    """Return how a field is filled in, its type as schema, and the options that it has."""
    if said.get("type") == "array":
        options = _options(said.get("items"))
        if options is None:
            raise FormError(f"the field {name} has no options")
        return "choices", {"type": "array", "items": options.of_many}, options.pairs
    options = _options(said)
    if options is not None:
        return "choice", options.of_one, options.pairs
    if isinstance(said.get("type"), str) and said["type"] in _KINDS:
        return _KINDS[said["type"]], {"type": said["type"]}, ()
    raise FormError(f"the field {name} is of no kind that a form has")


def _is_usable(default: Any, schema: dict[str, Any]) -> bool:
    """Tell whether a default can be shown as it is, and fits its field."""
    return (
        not (isinstance(default, list) and len(default) > MAX_OPTIONS)
        and is_finite(default)
        and _is_shown_whole(str(default))
        and first_fault(default, schema, keep=False, unchecked=TOO_LARGE) is None
    )


def _options(said: Any) -> _Options | None:
    """Return what there is to choose from, in the way it was written, or None where there is nothing."""
    match said:
        case {"enum": list() as many} | {"oneOf": list() as many} | {"anyOf": list() as many} if (
            len(many) > MAX_OPTIONS
        ):
            raise FormError(_OPTIONS)
        case {"enum": list() as values, "enumNames": list() as titles} if len(values) == len(titles):
            return _checked("enumNames", list(zip(values, titles, strict=True)))
        case {"enum": list() as values}:
            return _checked("enum", [(value, value) for value in values])
        case {"oneOf": list() as choices}:
            return _checked("oneOf", _titled(choices))
        case {"anyOf": list() as choices}:
            return _checked("anyOf", _titled(choices))
    return None


def _titled(choices: list[Any]) -> list[tuple[Any, Any]]:
    return [(one.get("const"), one.get("title")) if isinstance(one, dict) else (None, None) for one in choices]


def _checked(word: _Word, pairs: list[tuple[Any, Any]]) -> _Options:
    """Return options of which a person sees all, each as another one.

    Raises:
        FormError: They are not such.
    """
    if not pairs or not all(isinstance(text, str) for pair in pairs for text in pair):
        raise FormError(_OPTIONS)
    shown = tuple((value, shown_text(title, _TEXT_CHARACTERS)) for value, title in pairs)
    # Many clients show titles alone.
    are_different = all(len(set(texts)) == len(pairs) for texts in zip(*shown, strict=True))
    if not are_different or not all(_is_shown_whole(value) for value, _ in pairs):
        raise FormError("the options of a field are not different, too long, or hold what does not show")
    return _Options(word, shown)


def _is_shown_whole(text: str) -> bool:
    return shown_text(text, _TEXT_CHARACTERS) == text
