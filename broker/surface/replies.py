"""The reply to `execute_code`: a compact text for the model, and the envelope, each as a whole within the budget.

Above: dispatch.py. Below: run_texts.py, cuts.py. Failures come first and the calls made last, so that neither is ever
cut off; what is cut out of the middle is kept and can be read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.surface.cuts import Cuts
from broker.surface.outputs import output_uri
from broker.surface.token_room import TokenRoom
from broker.texts import run_texts, tool_texts
from broker.tiers.tokens import token_counter

if TYPE_CHECKING:
    from broker.runs.envelope import ExecutionResult
    from broker.tiers.tokens import TokenCounter

_CALLS = 50
_OUTPUTS = frozenset({"error", "value", "stdout", "stderr"})
_BYTES_PER_TOKEN = 2.5
"""Of the names, numbers and marks around an output, which have more."""
_RESERVED_TOKENS = 150
"""For what is said of cuts, and added to the text."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a call of one of the three tools.

    Attributes:
        text: For the model.
        structured: JSON object that fits the tool's output schema; None for tools without one.
        blocks: Images, audio and resources that a script displayed, as MCP content blocks.
        is_error: The call failed; the text says how to mend it.
    """

    text: str
    structured: dict[str, Any] | None = None
    blocks: tuple[dict[str, Any], ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A reply that was not cut yet.

    Attributes:
        result: The run.
        failure: What ended the run, if it failed.
        value: Its value as JSON; empty if it has none.
        output: Everything that it printed, and its value.
        offsets: Where the parts of the output begin in it.
        below: What a text has below the output: the calls, and what was not displayed.
        envelope: The envelope, whole.
    """

    result: ExecutionResult
    failure: str
    value: str
    output: str
    offsets: dict[str, int]
    below: str
    envelope: dict[str, Any]

    @classmethod
    def of(cls, result: ExecutionResult, session: str | None) -> Draft:
        """Return the draft of the reply for a run.

        `session` is the handle of a session that was made for this call; None where the caller knows it.
        """
        # Once: it may be megabytes.
        value = "" if result.value is None else _json(result.value)
        failure = _failure(result)
        output, offsets = _output(result, value, has_failed=bool(failure))
        envelope = result.model_dump(mode="json", exclude={"value"})
        envelope |= {"value": result.value, "truncated": None, "session": session}
        return cls(result, failure, value, output, offsets, _below(result, session), envelope)

    def is_short(self, tokens: int) -> bool:
        """Tell whether the reply has so few bytes that it certainly has no more tokens, which need not be counted."""
        if len(self.failure) + len(self.output) > tokens or len(self.result.calls) > _CALLS:
            return False
        spelled = [_json(self.envelope[name]) for name in ("error", "stdout", "stderr")]
        in_envelope = (
            sum(map(_bytes, [*spelled, self.value])) + _bytes(_json(_around(self.envelope))) / _BYTES_PER_TOKEN
        )
        in_text = _bytes(self.failure) + _bytes(self.output) + _bytes(self.below) / _BYTES_PER_TOKEN
        return max(in_envelope, in_text) + _RESERVED_TOKENS <= tokens

    def whole(self) -> Reply:
        """Return the reply without cuts."""
        return self._reply(self.failure, self.output, self.envelope)

    def cut(self, tokens: int, counter: TokenCounter | None = None) -> tuple[Reply, str | None]:
        """Return the reply within a budget, and what is to be kept to be read later; None if all is in the reply.

        Counts with `counter`; if None, with the installed tokenizer, which may take a second to load, or an estimate.
        """
        with_error, offsets = self._with_error()
        counter = counter or token_counter()
        cuts = Cuts(self.result.run_id, offsets, counter)
        room = TokenRoom(counter)
        failure, output = cuts.text(self.failure, self.output, _left(tokens, room.tokens(self.below)))
        envelope = self.envelope | {"calls": _first_calls(self.envelope["calls"], tokens * 2 // 5, room)}
        fields = cuts.envelope(envelope, self.value, _left(tokens, room.tokens(_json(_around(envelope)))))
        if len(envelope["calls"]) < len(self.result.calls):
            fields.append("calls")
        if not (fields or cuts.made):
            return self._reply(failure, output, envelope), None
        kept = with_error if any(name == "failure" or name.startswith("error") for name in cuts.made) else self.output
        envelope["truncated"] = {
            "fields": fields,
            "characters": len(kept),
            "resource": output_uri(self.result.run_id, 0),
            "offsets": {name: offsets[name] for name in fields if name in offsets},
        }
        return self._reply(failure, output, envelope), kept

    def _with_error(self) -> tuple[str, dict[str, int]]:
        """Return the output with what is known of the error behind it, and where all parts begin."""
        parts = [self.output] if self.output else []
        offsets = {**self.offsets, "output": 0}
        error = self.result.error
        traceback = self.failure if error is None else error.traceback or self.failure
        for name, text in (("traceback", traceback), ("message", "" if error is None else error.message)):
            parts.append(f"{name}:\n{text}")
            offsets[f"error.{name}"] = len("\n".join(parts)) - len(text)
        offsets["failure"] = offsets["error.traceback"] + len(traceback) - len(traceback.lstrip("\n"))
        return "\n".join(parts), offsets

    def _reply(self, failure: str, output: str, envelope: dict[str, Any]) -> Reply:
        parts = [failure, output if output.strip() or failure else self._nothing(), self.below]
        text = "\n".join(part.rstrip("\n") for part in parts if part)
        return Reply(text, envelope, tuple(self.result.displayed), is_error=bool(failure))

    def _nothing(self) -> str:
        displayed = len(self.result.displayed)
        return run_texts.displayed(displayed) if displayed else run_texts.NOTHING_TO_SHOW


def _below(result: ExecutionResult, session: str | None) -> str:
    made = run_texts.calls_line(result.calls)
    if result.outcome in {"raised", "stopped"}:
        refused = [run_texts.REFUSED] if result.is_refused else []
        made = "\n".join([*refused, run_texts.already_made(result.calls)])
    left_out = run_texts.not_displayed(result.not_displayed) if result.not_displayed else ""
    handle = tool_texts.new_session(session) if session is not None else ""
    return "\n".join(filter(None, (left_out, made, handle)))


def _failure(result: ExecutionResult) -> str:
    if result.stopped is not None:
        return run_texts.stopped(result.stopped, result.alike_calls)
    if result.error is None:
        return ""
    return result.error.traceback.strip("\n") or f"{result.error.type}: {result.error.message}"


def _output(result: ExecutionResult, value: str, *, has_failed: bool) -> tuple[str, dict[str, int]]:
    """Return everything that the script printed, and its value as JSON; labelled if there are several parts.

    Beside it, where each part begins.
    """
    if not result.stderr and not (result.stdout and (value or has_failed)):
        return result.stdout or value, {"stdout": 0, "value": 0}
    parts: list[str] = []
    offsets = {}
    length = 0
    for label, text in (("stdout", result.stdout), ("stderr", result.stderr), ("value", value)):
        if text:
            parts.append(f"{label}:\n{text.rstrip()}")
            offsets[label] = length + len(label) + 2
            length += len(parts[-1]) + 1
    return "\n".join(parts), offsets


def _first_calls(calls: list[dict[str, Any]], tokens: int, room: TokenRoom) -> list[dict[str, Any]]:
    """Return the first calls of an envelope that fit into so many tokens."""
    first = []
    for call in calls[:_CALLS]:
        tokens -= room.tokens(_json(call)) + 1
        if tokens < 0:
            break
        first.append(call)
    return first


def _around(envelope: dict[str, Any]) -> dict[str, Any]:
    """Return what of an envelope is neither output nor error."""
    return {name: said for name, said in envelope.items() if name not in _OUTPUTS}


def _left(tokens: int, around: int) -> int:
    """Return how many tokens of a budget are left for output and error: half of it at least."""
    return max(tokens - around - _RESERVED_TOKENS, tokens // 2)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
