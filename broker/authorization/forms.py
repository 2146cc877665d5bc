"""What a server asks a person while a call of its tool is open: a short form, or an address to visit.

Above: form_reading.py, which makes them of the requests of servers, and the answerers that show them. Below: shown.py.
Everything in a form was written by its server, and made so that it can be shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import urlsplit

from broker.authorization.addresses import is_nearby
from broker.authorization.shown import shown_name
from broker.calls.json_schema import TOO_LARGE, first_fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_SECRET = re.compile(r"(?i)passw|passphrase|secret|api.?key|access.?key|private.?key|token|credential|\bpin\b|\botp\b")

Action = Literal["accept", "decline", "cancel"]
Kind = Literal["text", "integer", "number", "yes or no", "choice", "choices"]


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
        return first_fault(answer, dict(self.schema), keep=False, unchecked=TOO_LARGE)


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
        key: What the server calls its request; empty where it has no plain name for it.
    """

    server: str
    tool: str
    message: tuple[str, ...]
    fields: tuple[FormField, ...] = ()
    url: str = ""
    timeout_seconds: float = 300.0
    key: str = ""

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
        """Whether it seems to ask for a password or a key, which no server may do with a form."""
        titles = (f"{one.name} {one.title} {one.schema.get('description', '')}" for one in self.fields)
        options = (title for one in self.fields for _, title in one.options)
        return bool(self.fields) and any(_SECRET.search(text) for text in (*self.message, *titles, *options))

    def as_text(self) -> str:
        """Return the form as plain text: who asks, and what; each line that the server wrote is marked."""
        tool = f" (while its tool {shown_name(self.tool)} is called)" if self.tool else ""
        lines = [f"The server {self.server} asks{tool}:", *(f"| {line}" for line in self.message)]
        if self.url:
            lines += [f"It wants you to visit {self.host}:", self.url, "Open it yourself if you trust it."]
            if is_nearby(urlsplit(self.url).hostname or ""):
                lines.append("! It leads to this machine or its own network, where a page may act in your name.")
        if self.wants_secret:
            lines.append("! It seems to ask for a secret. No server may do that here: do not give it one.")
        return "\n".join(lines)

    def fault(self, content: Mapping[str, Any]) -> str | None:
        """Return what is wrong with an answer, or None."""
        unknown = content.keys() - {one.name for one in self.fields}
        if unknown:
            return f"there is no field {min(unknown)!r}"
        if not all(map(is_finite, content.values())):
            return "a number is not finite"
        return first_fault(dict(content), self.schema, keep=False, unchecked=TOO_LARGE)


@dataclass(frozen=True, slots=True)
class FormReply:
    """What a person did with a form. `decline` is a no; `cancel` is no answer.

    Attributes:
        content: The answer by the fields' names; of an address nothing.

    Raises:
        TypeError: A field has a wrong type or value.
    """

    action: Action
    content: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a reply that could not be sent to a server."""
        if self.action not in get_args(Action):
            raise TypeError(f"a reply to a form is one of {', '.join(get_args(Action))}, not {self.action!r}")
        content: object = self.content
        if not isinstance(content, Mapping):
            kind = type(content).__name__
            raise TypeError(f"the content of a reply is a dict of fields, as {{'name': 'Anna'}}, not a {kind}")


class UnshownError(Exception):
    """A form that a person is not bothered with; the text is ours, and the server is told."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who can be asked during one call, and how.

    Attributes:
        tool: The tool that is called.
        timeout_seconds: How long there is for an answer.
        fill: Shows a form; raises `UnshownError` for one that it does not show.
    """

    tool: str
    timeout_seconds: float
    fill: Callable[[Form], Awaitable[FormReply]]


def is_finite(value: Any) -> bool:
    """Tell whether a value is no number that JSON lacks."""
    return not isinstance(value, float) or math.isfinite(value)
