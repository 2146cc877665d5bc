"""What the host tells a guest: the script, and the answers to its calls.

Above: the isolates, and run.py for the answers. Below: json_bounds.py. An answer comes from whoever embeds the sandbox;
one that cannot be handed in fails its call. `sandbox/guest/protocol.py` is the other end and describes the shapes;
guest_messages.py reads what comes from there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sandbox.json_bounds import is_within_depth
from sandbox.outcome import Completion, Failed, Returned

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sandbox.limits import Limits
    from sandbox.terms import Terms

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_dumps = json.JSONEncoder(separators=(",", ":")).encode


def encode_references(script: str, unimported: Iterable[str]) -> str:
    """Write the message that asks which tools a script names; `unimported` are names that need no import."""
    return _dumps({"script": script, "unimported": sorted(unimported)})


def encode_start(script: str, filename: str, manifest: Mapping[str, Any], terms: Terms) -> str:
    """Write the message that begins a run.

    The part of the manifest that the script's text does not name comes last, because most guests need not read it.
    """
    named: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, entry in manifest.items():
        part = named if name in script or entry.get("unimported") else rest
        part[name] = entry
    message = {
        "script": script,
        "filename": filename,
        "seed": terms.seed,
        "manifest": named,
        "kernel": terms.is_kernel,
    }
    return _dumps(message) + (_dumps(rest) if rest else "")


def encode_completion(call_id: int, completion: Completion, limits: Limits) -> str:
    """Write one answer. If it is not JSON or exceeds a limit, the script gets a `ToolResultError` instead.

    Raises:
        TypeError: It is no completion.
    """
    check_completion(completion)
    try:
        if isinstance(completion, Failed):
            body = json.dumps(
                {"kind": completion.kind, "message": completion.message, "details": completion.details},
                allow_nan=False,
            )
            field = "error"
        else:
            body = _ENCODER.encode(completion.value)
            field = "value"
    except (TypeError, ValueError, RecursionError):
        return _result_error(call_id, "the answer cannot be written as JSON")
    if len(body) > limits.completion_bytes:
        return _result_error(
            call_id,
            f"the answer has {len(body)} bytes as JSON, and {limits.completion_bytes} are allowed: ask for less",
        )
    if not is_within_depth(body, limits.depth):
        return _result_error(call_id, f"the answer is nested deeper than {limits.depth} levels")
    return f'{{"id":{call_id},"{field}":{body}}}'


def check_completion(given: object) -> None:
    """Refuse what a call cannot be answered by.

    Raises:
        TypeError: It is neither `Returned` nor `Failed`.
    """
    if not isinstance(given, (Returned, Failed)):
        kind = type(given).__name__
        raise TypeError(f"a call is answered by a sandbox.Returned or Failed, as Returned(5), not by a {kind}")


def encode_resume(completions: Iterable[str]) -> str:
    """Write the message that continues a run, from encoded completions."""
    return f"[{','.join(completions)}]"


def _result_error(call_id: int, message: str) -> str:
    error = {"kind": "ToolResultError", "message": message, "details": {}}
    return json.dumps({"id": call_id, "error": error})
