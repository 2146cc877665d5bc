"""One call of a client that writes no scripts, with the server's answer as it came.

Above: sessions.py. Below: tool_calls.py, so that a direct call passes the same checks in the same order as a call of a
script: known, described, arguments that fit, decided, sent once.
"""

from __future__ import annotations

import json
import secrets
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.calls.call_failures import failure
from broker.calls.content_blocks import is_whole, showable
from broker.calls.host_paths import HostPaths
from broker.calls.tool_calls import ToolCalls
from broker.calls.tool_results import MAX_BLOCKS, is_error
from broker.disclosure.asked_tools import problem_behind
from broker.errors import UnavailableError
from broker.texts import call_texts, result_texts
from sandbox import Call, Completion, Failed, Returned, Stopwatch

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

    from broker.authorization.desk import ConsentDesk
    from broker.calls.attempts import CallRecord
    from broker.disclosure.disclosure import Disclosure
    from broker.redaction import Redactor
    from broker.tools.catalog import CatalogEntry


@dataclass(frozen=True, slots=True)
class DirectResult:
    """How a direct call ended.

    Attributes:
        answer: The server's `CallToolResult` as it came, whose `isError` may be set; None when there is none. In the
            place of more than 1,000 content blocks is the text of the structured value.
        failed: Why there is none.
        record: What was decided and how long it took.
    """

    answer: dict[str, Any] | None
    failed: Failed | None
    record: CallRecord


@dataclass(frozen=True, kw_only=True)
class DirectCalls:
    """Makes direct calls in one session."""

    disclosure: Disclosure
    desk: ConsentDesk
    redact: Redactor

    async def call(self, name: str, arguments: dict[str, Any], on_progress: ProgressFnT | None = None) -> DirectResult:
        """Make one call of the tool of a name. Never raises for what a server can cause once it was sent.

        Raises:
            UnknownToolError: There is no such tool; nothing was sent.
            UnavailableError: Its server cannot be used, and no tool of it is known; nothing was sent.
            ValueError: The arguments cannot be written as JSON; nothing was sent.
        """
        arguments = _as_json(arguments)
        await self.disclosure.settle([name])
        catalog, upstreams = self.disclosure.catalog, self.disclosure.upstreams
        if catalog.find(name) is None and (problem := problem_behind(name, catalog, upstreams)):
            server = catalog.server_before(name)
            raise UnavailableError(server, f"{problem}. {call_texts.until_back(server)}")
        entry = catalog.lookup(name)
        desk = self.desk.for_run(f"call_{secrets.token_hex(8)}", is_direct=True)
        with closing(desk):
            calls = ToolCalls(
                disclosure=self.disclosure,
                desk=desk,
                stopwatch=Stopwatch(),
                redact=self.redact,
                convert=_as_sent,
                on_progress=on_progress,
            )
            completion = await calls.answer(Call(1, entry.python_name, arguments))
        record = calls.records[0]
        if isinstance(completion, Returned):
            answer = completion.value
            if answer["isError"]:
                answer = _without_host_paths(answer, HostPaths(arguments))
            return DirectResult(self.redact.value(answer), None, record)
        return DirectResult(None, completion, record)


def _as_sent(raw: dict[str, Any], entry: CatalogEntry, _paths: HostPaths) -> Completion:
    """Return an answer as the server sent it, if the protocol allows it here; a question to a person is not allowed."""
    answer: dict[str, Any] = {key: raw[key] for key in ("content", "structuredContent") if key in raw}
    if _has_many_blocks(answer):
        if is_error(raw) or answer.get("structuredContent") is None:
            fault = result_texts.no_blocks(MAX_BLOCKS)
            return failure(
                "ToolResultError", call_texts.unfit_result(entry.qualified_name, fault, is_too_large=True), entry
            )
        answer["content"] = [_text_of(answer["structuredContent"])]
    if raw.get("resultType", "complete") == "complete" and _can_be_sent(answer):
        return Returned({**answer, "isError": is_error(raw)})
    return failure("ToolResultError", call_texts.not_passed_on(entry.python_name), entry)


def _has_many_blocks(answer: dict[str, Any]) -> bool:
    """Tell whether there are more blocks than a script may get.

    The Python SDK sends a list as structured content and, beside it, as a block for each item.
    """
    content = answer.get("content")
    return isinstance(content, list) and len(content) > MAX_BLOCKS


def _text_of(structured: Any) -> dict[str, Any]:
    """Return the one block that the protocol wants beside a structured value."""
    try:
        return {"type": "text", "text": json.dumps(structured, ensure_ascii=False)}
    except RecursionError:
        return {}  # no client would take it


def _can_be_sent(answer: dict[str, Any]) -> bool:
    """Tell whether a client will accept an answer; if it refused it later, nobody would learn of the call."""
    from mcp.types import CallToolResult  # noqa: PLC0415  # the SDK is loaded by whoever has called

    content = answer.get("content", [])
    if not isinstance(content, list):
        return False
    if not all(is_whole(shown) for shown in map(showable, content) if shown is not None):
        return False
    try:
        CallToolResult.model_validate({"content": [], **answer}, by_name=False)
    except (ValueError, RecursionError):
        return False
    return True


def _without_host_paths(answer: dict[str, Any], paths: HostPaths) -> dict[str, Any]:
    """Return an error without folders of the host in its texts; data of blocks is left as it is."""
    content = [
        {**block, "text": paths.hidden(block["text"])}
        if isinstance(block, dict) and isinstance(block.get("text"), str)
        else block
        for block in answer.get("content", [])
    ]
    structured = {key: answer[key] for key in ("structuredContent",) if key in answer}
    return {**answer, "content": content, **paths.hidden_in(structured)}


def _as_json(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments as they are sent; those of a script have come as JSON."""
    try:
        text = json.dumps(arguments, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        raise ValueError(call_texts.NOT_AS_ARGUMENTS) from None
    sent: dict[str, Any] = json.loads(text)
    return sent
