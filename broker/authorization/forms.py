"""What a server asks a person while a call of its tool is open: a short form, or an address to visit.

Above: upstream_requests.py, which reads the requests of servers, and the answerers that show forms. Below: shown.py.
Everything in a form was written by its server; what cannot be shown whole and unambiguously is no form. An address is
shown, and never opened.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from broker.authorization.shown import shown_name, shown_text
from broker.calls.json_schema import first_fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

MOST_FIELDS = 20
MOST_OPTIONS = 100
MESSAGE_CHARACTERS = 2_000
URL_CHARACTERS = 2_000

_MESSAGE_LINES = 20
_TITLE_CHARACTERS = 80
_TEXT_CHARACTERS = 300
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_URL = re.compile(r"https?://[!-~]{1,1990}")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_KINDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "yes or no"}
_BOUNDS: Mapping[str, type | tuple[type, ...]] = {
    "minLength": int,
    "maxLength": int,
    "minimum": (int, float),
    "maximum": (int, float),
    "minItems": int,
    "maxItems": int,
}
_FORMATS = frozenset({"email", "uri", "date", "date-time"})
_SECRET = re.compile(r"(?i)passw|passphrase|secret|api.?key|access.?key|private.?key|token|credential|\bpin\b|\botp\b")

Kind = Literal["text", "integer", "number", "yes or no", "choice", "choices"]


class FormError(ValueError):
    """A request of a server that is no form; the text says why, in our words."""


@dataclass(frozen=True, slots=True)
class FormField:
    """One thing that a server wants to know.

    Attributes:
        name: Its key in the answer.
        kind: What the answer is; `choices` are any number of the options.
        schema: What the answer has to fit: our own words, with the server's values.
        options: The values to choose from, each with its title.
        is_required: Whether there has to be an answer.
    """

    name: str
    kind: Kind
    schema: Mapping[str, Any]
    options: tuple[tuple[str, str], ...] = ()
    is_required: bool = False

    @property
    def title(self) -> str:
        """What to call it, on one line."""
        return str(self.schema.get("title") or self.name)

    @property
    def default(self) -> Any:
        """The answer that the server suggests, or None."""
        return self.schema.get("default")

    def fault(self, answer: Any) -> str | None:
        """Return what is wrong with an answer, or None."""
        return first_fault(answer, dict(self.schema), keep=False)


@dataclass(frozen=True, slots=True)
class Form:
    """A question of a server to a person.

    Attributes:
        server: Which server asks, by its name in the config.
        tool: The tool whose call is open; empty where several are.
        message: What it says, line by line, with escapes.
        fields: What it wants to know; nothing where it sends the person to an address.
        url: The address that it sends the person to.
        timeout_seconds: How long there is for an answer.
    """

    server: str
    tool: str
    message: tuple[str, ...]
    fields: tuple[FormField, ...] = ()
    url: str = ""
    timeout_seconds: float = 300.0

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the answer."""
        required = [one.name for one in self.fields if one.is_required]
        properties = {one.name: dict(one.schema) for one in self.fields}
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}

    @property
    def host(self) -> str:
        """The host of the address."""
        return urlsplit(self.url).netloc

    @property
    def wants_secret(self) -> bool:
        """Whether it sounds as if it asked for a password or a key, which no server may do with a form."""
        titles = (f"{one.name} {one.title} {one.schema.get('description', '')}" for one in self.fields)
        return bool(self.fields) and any(_SECRET.search(text) for text in (*self.message, *titles))

    def as_text(self) -> str:
        """Return who asks what as plain text; each line of the server's is marked as such."""
        tool = f" (while its tool {shown_name(self.tool)} is called)" if self.tool else ""
        lines = [f"The server {self.server} asks{tool}:", *(f"| {line}" for line in self.message)]
        if self.url:
            lines += [f"It wants you to visit {self.host}:", self.url, "Open it yourself if you trust it."]
        if self.wants_secret:
            lines.append("! It seems to ask for a secret. No server may do that here: do not give it one.")
        return "\n".join(lines)

    def fault(self, content: Mapping[str, Any]) -> str | None:
        """Return what is wrong with an answer, or None."""
        unknown = content.keys() - {one.name for one in self.fields}
        if unknown:
            return f"there is no field {min(unknown)!r}"
        if not all(map(_is_finite, content.values())):
            return "a number is not finite"
        return first_fault(dict(content), self.schema, keep=False)


@dataclass(frozen=True, slots=True)
class FormReply:
    """What a person did with a form. `decline` is a no; `cancel` is no answer.

    Attributes:
        content: The answer by the fields' names; of an address nothing.
    """

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Person:
    """Who can be asked during one call, and how.

    Attributes:
        tool: The tool that is called.
        timeout_seconds: How long there is for an answer.
        fill: Shows a form.
    """

    tool: str
    timeout_seconds: float
    fill: Callable[[Form], Awaitable[FormReply]]


def form_of(server: str, tool: str, params: Mapping[str, Any], *, timeout_seconds: float) -> Form:
    """Read the parameters of an `elicitation/create` of a server.

    Raises:
        FormError: They are none that can be shown.
    """
    message = params.get("message")
    if not isinstance(message, str):
        raise FormError("it has no message")
    lines = _lines(message)
    if params.get("mode") == "url":
        return Form(server, tool, lines, url=_checked_url(params.get("url")), timeout_seconds=timeout_seconds)
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or len(properties) > MOST_FIELDS:
        raise FormError(f"it has no list of at most {MOST_FIELDS} fields")
    required = schema.get("required", []) if isinstance(schema, dict) else []
    names = required if isinstance(required, list) else []
    fields = tuple(_field(name, one, is_required=name in names) for name, one in properties.items())
    return Form(server, tool, lines, fields, timeout_seconds=timeout_seconds)


def _lines(message: str) -> tuple[str, ...]:
    lines = message[:MESSAGE_CHARACTERS].splitlines() or [""]
    is_cut = len(lines) > _MESSAGE_LINES or len(message) > MESSAGE_CHARACTERS
    shown = [shown_text(line, MESSAGE_CHARACTERS) for line in lines[:_MESSAGE_LINES]]
    return (*shown, "…") if is_cut else tuple(shown)


def _checked_url(url: Any) -> str:
    """Return an address that looks like where it leads."""
    if not isinstance(url, str) or not _URL.fullmatch(url):
        raise FormError(f"its address is no https one of at most {URL_CHARACTERS} ASCII characters")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise FormError("its address cannot be read") from None
    if not parts.hostname or "@" in parts.netloc or "\\" in url:
        raise FormError("its address hides where it leads")
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise FormError("its address is not an https one")
    return url


def _field(name: Any, said: Any, *, is_required: bool) -> FormField:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(said, dict):
        raise FormError("a field has no plain name")
    schema: dict[str, Any] = {
        key: shown_text(text, limit)
        for key, limit in (("title", _TITLE_CHARACTERS), ("description", _TEXT_CHARACTERS))
        if isinstance(text := said.get(key), str)
    }
    schema |= {
        key: said[key]
        for key, kind in _BOUNDS.items()
        if isinstance(said.get(key), kind) and not isinstance(said[key], bool) and _is_finite(said[key])
    }
    if isinstance(said.get("format"), str) and said["format"] in _FORMATS:
        schema["format"] = said["format"]
    if said.get("type") == "array":
        options = _options(said.get("items"))
        if options is None:
            raise FormError(f"the field {name} has no options")
        schema |= {"type": "array", "items": _one_of(options, "anyOf")}
        kind: Kind = "choices"
    elif (options := _options(said)) is not None:
        schema |= _one_of(options, "oneOf")
        kind = "choice"
    elif (kind := _KINDS.get(str(said.get("type")), "choice")) != "choice":  # type: ignore[assignment]  # its values
        schema["type"] = said["type"]
    else:
        raise FormError(f"the field {name} is of no kind that a form has")
    default = said.get("default")
    if (
        default is not None
        and _is_finite(default)
        and _is_shown_whole(str(default))
        and first_fault(default, schema, keep=False) is None
    ):
        schema["default"] = default
    return FormField(name, kind, schema, options or (), is_required)


def _is_finite(value: Any) -> bool:
    """Tell whether a value is no number that JSON lacks."""
    return not isinstance(value, float) or math.isfinite(value)


def _options(said: Any) -> tuple[tuple[str, str], ...] | None:
    """Return values with titles, or None where there is nothing to choose from."""
    match said:
        case {"enum": list() as values, "enumNames": list() as titles} if len(values) == len(titles):
            pairs = list(zip(values, titles, strict=True))
        case {"enum": list() as values}:
            pairs = [(value, value) for value in values]
        case {"oneOf": list() as choices} | {"anyOf": list() as choices}:
            pairs = [(one.get("const"), one.get("title")) if isinstance(one, dict) else (None, None) for one in choices]
        case _:
            return None
    if not 0 < len(pairs) <= MOST_OPTIONS or not all(isinstance(text, str) for pair in pairs for text in pair):
        raise FormError(f"a field has no list of at most {MOST_OPTIONS} options")
    values = [value for value, _ in pairs]
    if not all(map(_is_shown_whole, values)) or len(set(values)) < len(values):
        raise FormError("the options of a field are not different, too long, or hold what does not show")
    return tuple((value, shown_text(title, _TEXT_CHARACTERS)) for value, title in pairs)


def _is_shown_whole(text: str) -> bool:
    return shown_text(text, _TEXT_CHARACTERS) == text


def _one_of(options: tuple[tuple[str, str], ...], word: str) -> dict[str, Any]:
    if all(value == title for value, title in options):
        return {"type": "string", "enum": [value for value, _ in options]}
    titled = [{"const": value, "title": title} for value, title in options]
    return {"type": "string", word: titled} if word == "oneOf" else {word: titled}
