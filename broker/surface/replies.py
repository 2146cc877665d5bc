"""The reply to `execute_code`: a compact text for the model, and the envelope, each as a whole within the budget.

Above: dispatch.py. Below: run_texts.py, cuts.py, displayed_texts.py. Failures come first and the calls made last, so
that neither is ever cut off; what is cut out of the middle is kept and can be read. Displayed texts share the budget.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.surface.cuts import Cuts
from broker.surface.displayed_texts import text_blocks, texts_of, with_texts
from broker.surface.outputs import output_uri
from broker.surface.token_room import TokenRoom
from broker.texts import run_texts, tool_texts
from broker.tiers.tokens import token_counter

if TYPE_CHECKING:
    from broker.runs.envelope import ExecutionResult
    from broker.tiers.tokens import TokenCounter

_json = json.JSONEncoder(ensure_ascii=False).encode

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
        displayed: The texts of blocks that it displayed, by their names in what is kept.
        envelope: The envelope, whole.
    """

    result: ExecutionResult
    failure: str
    value: str
    output: str
    offsets: dict[str, int]
    below: str
    displayed: dict[str, str]
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
        displayed = texts_of(result.displayed)
        return cls(result, failure, value, output, offsets, _below(result, session), displayed, envelope)

    def is_short(self, tokens: int) -> bool:
        """Tell whether the reply has so few bytes that it certainly has no more tokens, which need not be counted."""
        if (
            len(self.failure) + len(self.output) + sum(map(len, self.displayed.values())) > tokens
            or len(self.result.calls) > _CALLS
        ):
            return False
        spelled = _json([self.envelope[name] for name in ("error", "stdout", "stderr")])
        around = _bytes(_json(_around(self.envelope))) / _BYTES_PER_TOKEN
        in_envelope = _bytes(spelled) + _bytes(self.value) + around
        in_text = _bytes(self.failure) + _bytes(self.output) + _bytes(self.below) / _BYTES_PER_TOKEN
        displayed = sum(_bytes(_json(block)) for block in text_blocks(self.result.displayed))
        return max(in_envelope, in_text) + displayed + _RESERVED_TOKENS <= tokens

    def whole(self) -> Reply:
        """Return the reply without cuts."""
        return self._reply(self.failure, self.output, self.envelope, tuple(self.result.displayed))

    def cut(self, tokens: int, counter: TokenCounter | None = None) -> tuple[Reply, str | None]:
        """Return the reply within a budget, and what is to be kept to be read later; None if all is in the reply.

        Counts with `counter`; if None, with the installed tokenizer, which may take a second to load, or an estimate.
        """
        everything, offsets = self._everything()
        counter = counter or token_counter()
        cuts = Cuts(self.result.run_id, offsets, counter)
        room = TokenRoom(counter)
        most = tokens // 4 if self.displayed else tokens * 2 // 5
        envelope = self.envelope | {"calls": _first_calls(self.envelope["calls"], most, room)}
        around = room.tokens(_json(_around(envelope)))
        shown = cuts.displayed(self.displayed, self._for_displayed(tokens, around, room))
        displayed = with_texts(self.result.displayed, shown)
        tokens -= _tokens_of(text_blocks(displayed), room)
        failure, output = cuts.text(self.failure, self.output, _left(tokens, room.tokens(self.below)))
        fields = cuts.envelope(envelope, self.value, _left(tokens, around))
        if len(envelope["calls"]) < len(self.result.calls):
            fields.append("calls")
        if any(name in shown for name in cuts.made):
            fields.append("displayed")
        if not (fields or cuts.made):
            return self._reply(failure, output, envelope, displayed), None
        has_more = any(name == "failure" or name.startswith(("error", "displayed")) for name in cuts.made)
        kept = everything if has_more else self.output
        envelope["truncated"] = {
            "fields": fields,
            "characters": len(kept),
            "resource": output_uri(self.result.run_id, 0),
            "offsets": {name: offsets[name] for name in fields if name in offsets},
        }
        return self._reply(failure, output, envelope, displayed), kept

    def _for_displayed(self, tokens: int, around: int, room: TokenRoom) -> int:
        """Return how many tokens displayed texts have: what the rest does not need, and a quarter of all at least."""
        error = self.result.error
        said = _json([self.failure, "" if error is None else error.message, self.output])
        most = max(tokens - around - _RESERVED_TOKENS - room.used(said, tokens // 2), tokens // 4)
        empty = with_texts(self.result.displayed, dict.fromkeys(self.displayed, ""))
        return most - _tokens_of(text_blocks(empty), room)

    def _everything(self) -> tuple[str, dict[str, int]]:
        """Return the output, behind it displayed texts and what is known of an error, and where all parts begin."""
        parts = [self.output] if self.output else []
        length = len(self.output) + 1 if self.output else 0
        offsets = {**self.offsets, "output": 0, "displayed": length}
        for label, name, text in [*((name, name, text) for name, text in self.displayed.items()), *self._of_error()]:
            offsets[name] = length + len(label) + 2
            parts.append(f"{label}:\n{text}")
            length += len(parts[-1]) + 1
        if self.failure:
            traceback = self._traceback
            offsets["failure"] = offsets["error.traceback"] + len(traceback) - len(traceback.lstrip("\n"))
        return "\n".join(parts), offsets

    def _of_error(self) -> list[tuple[str, str, str]]:
        if not self.failure:
            return []
        message = "" if self.result.error is None else self.result.error.message
        return [("traceback", "error.traceback", self._traceback), ("message", "error.message", message)]

    @property
    def _traceback(self) -> str:
        error = self.result.error
        return self.failure if error is None else error.traceback or self.failure

    def _reply(
        self, failure: str, output: str, envelope: dict[str, Any], displayed: tuple[dict[str, Any], ...]
    ) -> Reply:
        parts = [failure, output if output.strip() or failure else self._nothing(), self.below]
        text = "\n".join(part.rstrip("\n") for part in parts if part)
        return Reply(text, envelope, displayed, is_error=bool(failure))

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


def _tokens_of(blocks: list[dict[str, Any]], room: TokenRoom) -> int:
    return sum(room.tokens(_json(block)) for block in blocks)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
