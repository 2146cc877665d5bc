"""The reply to `execute_code`: a compact text for the model, and the envelope, both within a budget.

Above: dispatch.py. Below: run_texts.py, outputs.py. Failures come first and the calls made last, so that neither is
ever cut; what is cut out of the middle is kept and can be read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.surface import run_texts, texts
from broker.surface.outputs import output_uri

if TYPE_CHECKING:
    from broker.runs.envelope import ExecutionResult
    from broker.surface.outputs import KeptOutputs

OUTPUT_TOKENS = 6_000
"""How much of a run's output a reply holds."""

CHARACTERS_PER_TOKEN = 4
"""The estimate that budgets are counted with: no tokenizer fits all models."""

_TAIL_SHARE = 3
_TRACEBACK_CHARACTERS = 3_000
_CALLS = 50


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


def reply_of(
    result: ExecutionResult,
    outputs: KeptOutputs,
    *,
    owner: str,
    session: str | None,
    output_tokens: int,
) -> Reply:
    """Return the reply for a run; output beyond the budget is kept for `owner`.

    Args:
        result: The run.
        outputs: Where output beyond the budget is kept.
        owner: Who may read it.
        session: The handle of a session that was made for this call; None where the caller knows it.
        output_tokens: The budget.
    """
    budget = output_tokens * CHARACTERS_PER_TOKEN
    # Once: it may be megabytes.
    value = "" if result.value is None else json.dumps(result.value, ensure_ascii=False)
    failure = _failure(result)
    output = _output(result, value, has_failed=bool(failure))
    envelope = result.model_dump(mode="json", exclude={"value"})
    envelope |= {"value": result.value, "truncated": None, "session": session}
    shown = output if len(output) <= budget else _cut(output, budget, result.run_id)
    cut = _cut_fields(envelope, value, budget, result.run_id)
    if cut or shown is not output:
        outputs.keep(result.run_id, output, owner)
        envelope["truncated"] = {
            "fields": cut,
            "characters": len(output),
            "resource": output_uri(result.run_id, 0),
        }
    return Reply(_text(result, failure, shown, session), envelope, tuple(result.displayed), is_error=bool(failure))


def _text(result: ExecutionResult, failure: str, shown: str, session: str | None) -> str:
    """Return the text for the model: failure, output, calls; `shown` is what there is room for of the output."""
    made = run_texts.calls_line(result.calls)
    if failure:
        made = "\n".join([*([run_texts.REFUSED] if result.is_refused else []), run_texts.already_made(result.calls)])
    elif not shown.strip():
        shown = run_texts.displayed(len(result.displayed)) if result.displayed else run_texts.NOTHING_TO_SHOW
    left_out = run_texts.not_displayed(result.not_displayed) if result.not_displayed else ""
    handle = texts.new_session(session) if session is not None else ""
    return "\n".join(part.rstrip("\n") for part in (failure, shown, left_out, made, handle) if part)


def _failure(result: ExecutionResult) -> str:
    if result.stopped is not None:
        return run_texts.stopped(result.stopped, result.alike_calls)
    if result.error is None:
        return ""
    trace = result.error.traceback.strip("\n") or f"{result.error.type}: {result.error.message}"
    if len(trace) > _TRACEBACK_CHARACTERS:
        half = _TRACEBACK_CHARACTERS // 2
        trace = f"{trace[:half]}\n[…]\n{trace[-half:]}"
    return trace


def _output(result: ExecutionResult, value: str, *, has_failed: bool) -> str:
    """Return everything that the script printed, and its value as JSON; labelled if there are several parts."""
    if not result.stderr and not (result.stdout and (value or has_failed)):
        return result.stdout or value
    parts = (("stdout", result.stdout), ("stderr", result.stderr), ("value", value))
    return "\n".join(f"{label}:\n{text.rstrip()}" for label, text in parts if text)


def _cut(output: str, budget: int, run_id: str) -> str:
    """Return the beginning and the end of an output, with where the rest is."""
    tail = budget // _TAIL_SHARE
    head = budget - tail
    return output[:head] + run_texts.left_out(len(output) - budget, output_uri(run_id, head)) + output[-tail:]


def _cut_fields(envelope: dict[str, Any], value: str, budget: int, run_id: str) -> list[str]:
    """Bring the fields of an envelope within the budget; return the names of those that lost something.

    `value` is its value as JSON.
    """
    cut = []
    for name in ("stdout", "stderr"):
        if len(envelope[name]) > budget:
            envelope[name] = _cut(envelope[name], budget, run_id)
            cut.append(name)
    if len(value) > budget:
        envelope["value"] = None
        cut.append("value")
    if len(envelope["calls"]) > _CALLS:
        del envelope["calls"][_CALLS:]
        cut.append("calls")
    return cut
