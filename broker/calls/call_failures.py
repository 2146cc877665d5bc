"""Failed calls as scripts get them: the kind of exception, its text and its details.

Above: tool_calls.py, direct_calls.py and tool_results.py. Below: call_texts.py, which has the texts. Which kind stands
for which status of a record is in attempts.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from broker.errors import (
    CallTimeoutError,
    InputRefusedError,
    OutcomeUnknownError,
    ReplyError,
    ToolRejectedError,
    UnavailableError,
    UpstreamError,
)
from broker.texts import call_texts
from codegen.plain_text import paragraph
from sandbox import Failed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.tools.catalog import CatalogEntry

SERVER_TEXT_CHARACTERS = 560
"""How much of a server's error text a message has; of a longer one, the beginning and the end."""

HEAD_CHARACTERS = 400
_TAIL_CHARACTERS = SERVER_TEXT_CHARACTERS - HEAD_CHARACTERS

_KIND_OF_ERROR: Mapping[type[UpstreamError], str] = {
    UnavailableError: "ToolUnavailableError",
    CallTimeoutError: "ToolTimeoutError",
    OutcomeUnknownError: "ToolOutcomeUnknown",
    ToolRejectedError: "ToolError",
    InputRefusedError: "ToolError",
    ReplyError: "ToolResultError",
}


_NONE = re.compile(r"([^.\[\]]+): None is not ")
_INSTEAD = (
    (re.compile(r"'[-+]?\d+' is not of type 'integer'\Z"), call_texts.CONVERT_TO_INT),
    (re.compile(r"'[-+]?[\d.]+' is not of type 'number'\Z"), call_texts.CONVERT_TO_FLOAT),
    (re.compile(r": -?[\d.]+ is not of type 'string'\Z"), call_texts.CONVERT_TO_STR),
    (re.compile(r"\] is not of type 'object'\Z"), call_texts.AS_DICT),
    (re.compile(r"['\"]\{.* is not of type 'object'\Z"), call_texts.NOT_AS_JSON),
    (re.compile(r"['\"]\[.* is not of type 'array'\Z"), call_texts.NOT_AS_JSON),
    (re.compile(r"(?:'.*'|\}|-?[\d.]+) is not of type 'array'\Z"), call_texts.IN_A_LIST),
)


def failure(kind: str, message: str, tool: CatalogEntry, **details: Any) -> Failed:
    """Return a failed call with the details that every exception of a script has."""
    return Failed(kind, message, {"server": tool.spec.server, "tool": tool.spec.name, **details})


def quoted(server: str, text: str, *, is_in_content: bool = False) -> str:
    """Return a server's text, bounded and inert, each line of it marked, so that none can be taken for ours.

    The end of a long text stays, where many programs say what went wrong; `is_in_content` means that a script has all.
    """
    marked = _marked(paragraph(text, SERVER_TEXT_CHARACTERS + 1))
    if len(marked) <= SERVER_TEXT_CHARACTERS and len(text) <= SERVER_TEXT_CHARACTERS:
        return f"[text of {server}] {marked}"
    head, tail = marked[:HEAD_CHARACTERS], _end_of(text)
    left_out = call_texts.cut_in_the_middle(max(len(text) - len(head) - len(tail), 1), is_in_content=is_in_content)
    return f"[text of {server}] {head}\n{left_out}\n| {tail}"


def _marked(text: str) -> str:
    return "\n| ".join(text.split("\n"))


def _end_of(text: str) -> str:
    """Return the last whole lines of a long text that fit, or what fits of its last one, marked but for the first."""
    end = _marked(paragraph(text[-4 * _TAIL_CHARACTERS :], 4 * _TAIL_CHARACTERS))[-_TAIL_CHARACTERS:]
    _, is_several, whole = end.partition("\n| ")
    return whole if is_several else end


def needs_description(tool: CatalogEntry, changed: str) -> Failed:
    """Return the failure of a call whose tool is not described; `changed` says what changed since it was."""
    text = call_texts.call_not_described(tool.python_name, tool.qualified_name, changed)
    return failure("ToolDescriptionRequired", text, tool)


def told_faults(tool: CatalogEntry, faults: Sequence[str], unnamed: Sequence[str]) -> list[str]:
    """Return the words for arguments that do not fit, and for those that the tool does not know."""
    told = [call_texts.fault(fault, _instead(tool, fault)) for fault in faults]
    if unnamed:
        told.append(call_texts.no_parameter(unnamed, [parameter.key for parameter in tool.stub().parameters]))
    return told


def bad_arguments(tool: CatalogEntry, told: Sequence[str]) -> Failed:
    """Return the failure of a call whose arguments do not fit, with the words for them."""
    return failure("ToolArgumentsError", call_texts.bad_arguments(tool.python_name, told), tool)


def _instead(tool: CatalogEntry, fault: str) -> str:
    """Return what to write instead of a value of the wrong type, if that is clear."""
    absent = _NONE.match(fault)
    if absent is not None:
        given = next((one for one in tool.stub().parameters if one.key == absent[1] and not one.required), None)
        return call_texts.leave_out(given.name) if given is not None else ""
    return text_for(fault, _INSTEAD)


def refused(tool: CatalogEntry, reason: str) -> Failed:
    """Return the failure of a call that was not allowed, or could not be recorded."""
    return failure("ToolRefusedError", reason, tool)


def failed_at_server(tool: CatalogEntry, error: UpstreamError) -> Failed:
    """Return the failure of a call at its server; the text may quote the last words of a server that died."""
    text = str(error)
    if isinstance(error, ToolRejectedError):
        text = f"{text} {quoted(error.server, error.server_text)}"
    return failure(_KIND_OF_ERROR[type(error)], text, tool)


def text_for(found: str, texts: Iterable[tuple[re.Pattern[str], str]]) -> str:
    """Return the text of the first pattern that is in what was found; empty if none is."""
    return next((text for pattern, text in texts if pattern.search(found)), "")
