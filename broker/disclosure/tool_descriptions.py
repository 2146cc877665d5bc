"""The words of "MCP Extension: Progressive Disclosure for Tool Descriptions", version 2.1: URIs and shapes, as data.

Above: the server role (server/tools_mode.py) and the client role (upstreams/remote_descriptions.py). Below: texts/.
Tools are listed with one sentence and an open schema; their definitions are read from the resource `tool_descriptions`,
which describes them to the session; a call before that is refused with the URI to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from broker.errors import UnknownToolError
from broker.texts import description_texts
from broker.texts.call_texts import search_request
from codegen.plain_text import one_line, sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codegen import ToolSpec

RESOURCE_NAME = "tool_descriptions"
RESOURCE_URI = f"resource:///{RESOURCE_NAME}"
TEMPLATE = f"{RESOURCE_URI}{{?tools}}"
MIME_TYPE = "application/json"

SESSION_KEY = "codemode/session"
"""Where a request's `_meta` names a session, and that of an answer tells the name of a new one; not of the text."""

MISSING_SELECTION = "MISSING_TOOL_SELECTION"
DESCRIPTION_REQUIRED = "TOOL_DESCRIPTION_REQUIRED"
TOO_MANY_FETCHES = "TOO_MANY_FETCHES"

MAX_TOOLS = 100
"""How many tools one read may ask for; the others are answered with an error."""

AVAILABLE = 50
"""How many names an error lists."""

_URI_CHARACTERS = 50_000
_AROUND_NAMES_CHARACTERS = 2_000
"""Room beside the names of a read: a server may list the resource under a URI of up to 1,000, and name a session."""

_SENTENCE_CHARACTERS = 160

WORKFLOW = description_texts.workflow(RESOURCE_URI)
"""The description of the resource where the tools themselves are listed."""

SCRIPTS_WORKFLOW = description_texts.scripts_workflow(RESOURCE_URI)
"""The description of the resource where tools are called in scripts."""

SYSTEM_PROMPT = description_texts.system_prompt(RESOURCE_URI, DESCRIPTION_REQUIRED)
"""What a client's system prompt should say."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a read of the resource asks for."""

    tools: tuple[str, ...]
    session: str | None


def selection_of(uri: str) -> Selection | None:
    """Return what a URI asks for; None when it is not of this resource.

    Raises:
        ValueError: It is longer than is read; the text says what to do.
    """
    if len(uri) > _URI_CHARACTERS:
        if uri.startswith(RESOURCE_URI):
            raise ValueError(description_texts.too_long_uri(_URI_CHARACTERS, MAX_TOOLS))
        return None
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "resource" or parts.netloc or parts.path != f"/{RESOURCE_NAME}":
        return None
    tools: list[str] = []
    session = None
    for pair in parts.query.split("&"):
        key, _, value = pair.partition("=")
        if key == "tools":  # split before it is decoded: a name may have a comma
            tools += [name for piece in value.split(",") if (name := unquote(piece).strip())]
        elif key == "session":
            session = unquote(value) or None
    return Selection(tuple(dict.fromkeys(tools)), session)


def uri_of(tools: Sequence[str], session: str | None = None, *, resource_uri: str = RESOURCE_URI) -> str:
    """Return the URI that asks for these tools."""
    names = ",".join(quote(name, safe="") for name in tools)
    return f"{resource_uri}?tools={names}" + (f"&session={quote(session, safe='')}" if session else "")


def in_one_read(tools: Sequence[str]) -> Sequence[str]:
    """Return the first of some tools, as many as one read may ask for; one at least."""
    left = _URI_CHARACTERS - _AROUND_NAMES_CHARACTERS
    for place, name in enumerate(tools[:MAX_TOOLS]):
        left -= len(quote(name, safe="")) + 1
        if left < 0:
            return tools[: max(place, 1)]
    return tools[:MAX_TOOLS]


def resource(workflow: str) -> dict[str, Any]:
    """Return the resource as `resources/list` has it; `workflow` is one of the descriptions above."""
    return {"uri": RESOURCE_URI, "name": RESOURCE_NAME, "description": workflow, "mimeType": MIME_TYPE}


def minimal(spec: ToolSpec, name: str, hints: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a tool as `tools/list` has it: one sentence and an open schema."""
    listed = {
        "name": name,
        "description": sentences(spec.about, 1, _SENTENCE_CHARACTERS),
        "inputSchema": {"type": "object", "properties": {}},
    }
    return listed | ({"annotations": hints} if hints else {})


def missing_selection(available: Sequence[str]) -> dict[str, Any]:
    """Return what a read without `tools=` gets."""
    message = description_texts.missing_selection(RESOURCE_URI)
    return _error(MISSING_SELECTION, message, available_tools=list(available[:AVAILABLE]))


def description_required(name: str, session: str | None, changed: str) -> dict[str, Any]:
    """Return what a call gets before the tool's description was read, or after what it says has `changed`."""
    uri = uri_of([name], session)
    message = description_texts.description_required(name, uri, session, changed)
    return _error(DESCRIPTION_REQUIRED, message, resource_uri=uri)


def too_many_fetches(seconds: float) -> dict[str, Any]:
    """Return what a read gets beyond the rate that it may fetch at."""
    message = description_texts.too_many_fetches(seconds)
    return _error(TOO_MANY_FETCHES, message, retry_after_seconds=round(seconds, 1))


def unknown_entry(
    name: str, near: Sequence[str], available: Sequence[str], *, is_ambiguous: bool, is_withdrawn: bool
) -> dict[str, Any]:
    """Return the entry of a name that no tool has, or several; `available` are names that there are.

    `near` are the names nearest to it, or with `is_ambiguous` those of the tools that have it.
    """
    error = UnknownToolError(one_line(name, 200), near, is_ambiguous=is_ambiguous, is_withdrawn=is_withdrawn)
    names = dict.fromkeys([*near, *available])
    others = "" if near else f" Try {search_request(name)}."
    return {"error": f"{error}{others}", "available_tools": list(names)[:AVAILABLE]}


def error_code(answer: Any) -> str | None:
    """Return the code of an error of this extension in what a server sent, in any of the places where it may be."""
    if not isinstance(answer, dict):
        return None
    error = answer.get("error", answer)
    code = error.get("code") if isinstance(error, dict) else error
    return code if isinstance(code, str) else None


def error_message(answer: Any) -> str:
    """Return the words of such an error; empty if it has none."""
    error = answer.get("error", answer) if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else ""


def _error(code: str, message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **more}}
