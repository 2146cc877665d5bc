"""Failed calls as scripts get them: the kind of exception, its text and its details.

Above: callees.py, argument_faults.py, direct_calls.py and tool_results.py. Below: call_texts.py, which has the texts.
Which kind stands for which status of a record is in attempts.py.
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

    from broker.calls.host_paths import HostPaths
    from broker.tools.catalog import CatalogEntry

SERVER_TEXT_CHARACTERS = 510
"""How much of a server's error text a message has; of a longer one, the beginning and the end."""

HEAD_CHARACTERS = 350
_TAIL_CHARACTERS = SERVER_TEXT_CHARACTERS - HEAD_CHARACTERS
_READ_CHARACTERS = 64 * 1024
_MARK = "\n| "
_BEGUN_LINE = re.compile(r"\n\|? ?\Z")

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


def quoted(server: str, text: str, paths: HostPaths, *, is_in_content: bool = False) -> str:
    """Return a server's text, bounded and inert, each line of it marked, so that none can be taken for ours.

    The end of a long text stays, where many programs say what went wrong; `is_in_content` means that a script has all.
    Paths of the host are hidden before the cut, for half of one could not be told from other words.
    """
    said = paths.hidden(paragraph(_ends(text), 2 * _READ_CHARACTERS + 1))
    marked = _marked(said)
    if len(marked) <= SERVER_TEXT_CHARACTERS:
        return f"[text of {server}] {marked}"
    head, tail = _BEGUN_LINE.sub("", marked[:HEAD_CHARACTERS]), marked[-_TAIL_CHARACTERS:]
    _, has_whole_lines, whole_lines = tail.partition(_MARK)
    tail = whole_lines if has_whole_lines else tail
    shown = len(f"{head}{tail}".replace(_MARK, "\n"))
    missing = len(said) - shown + max(len(text) - 2 * _READ_CHARACTERS, 0)
    return (
        f"[text of {server}] {head}\n{call_texts.cut_in_the_middle(missing, is_in_content=is_in_content)}{_MARK}{tail}"
    )


def _marked(text: str) -> str:
    return text.replace("\n", _MARK)


def _ends(text: str) -> str:
    """Return what is read of a text: the whole of it, or both its ends."""
    if len(text) <= 2 * _READ_CHARACTERS:
        return text
    return f"{text[:_READ_CHARACTERS]}\n{text[-_READ_CHARACTERS:]}"


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


def failed_at_server(tool: CatalogEntry, error: UpstreamError, paths: HostPaths) -> Failed:
    """Return the failure of a call at its server; the text may quote the last words of a server that died."""
    text = str(error)
    if isinstance(error, ToolRejectedError):
        text = f"{text} {quoted(error.server, error.server_text, paths)}"
    return failure(_KIND_OF_ERROR[type(error)], text, tool)


def text_for(found: str, texts: Iterable[tuple[re.Pattern[str], str]]) -> str:
    """Return the text of the first pattern that is in what was found; empty if none is."""
    return next((text for pattern, text in texts if pattern.search(found)), "")
