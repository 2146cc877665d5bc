"""Reads the messages of a guest: a step, or the references that it found in a script.

Above: step_reading.py, process_isolate.py. Below: json_bounds.py and inert.py. A guest's message is hostile: its size,
nesting and number of values are checked before it is decoded, its shape field by field afterwards.
`sandbox/guest/protocol.py` is the other end and describes the shapes; host_messages.py writes what goes there.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox.errors import ProtocolError
from sandbox.inert import inert_text, inert_value, is_inert_json
from sandbox.json_bounds import decoded_bytes, has_more_values, is_within_depth
from sandbox.outcome import Call, Completed, Raised, Reference, Stopped

if TYPE_CHECKING:
    from sandbox.limits import Limits

MAX_VALUES = 500_000
"""The most values in one guest message, each of about `VALUE_BYTES`; a list or an object counts as four."""

ENVELOPE_DEPTH = 3
"""Nesting that the message itself adds around a call's arguments; around a value it is one less."""

PROTOCOL_ERROR = "ProtocolError"

MAX_LINE = 10_000_000

MAX_ID = 2**63 - 1
"""The largest id of a call: what a database and a journal can hold."""

MAX_FUNCTION = 1_000
"""Characters of the function's name in a call; those of stubs are shorter."""

WRITTEN_BYTES = 12
"""The most bytes of a character as JSON (two escapes). Short enough messages need no counting."""

MAX_TEXT = 20_000
"""Characters of one text field: a type, a message, a traceback."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Step(NamedTuple):
    """What the guest said when it returned.

    Attributes:
        calls: Calls the script now waits for, new in this step.
        cancelled: Ids of earlier calls it no longer waits for.
        timer: Monotonic time of the run's clock at which it wants to go on by itself, in seconds.
        outcome: Set when the script has ended.
        line: Where the script waits for its timer, if for no call; 0 where that is not known.
        characters: Length of the message it was read from.
        decoded_bytes: About the most memory that its calls take.
    """

    calls: tuple[Call, ...] = ()
    cancelled: tuple[int, ...] = ()
    timer: float | None = None
    outcome: Completed | Raised | Stopped | None = None
    line: int = 0
    characters: int = 0
    decoded_bytes: int = 0


def protocol_failure(message: str) -> Raised:
    """Return how a run ends whose guest broke the protocol."""
    return Raised(PROTOCOL_ERROR, message, f"{PROTOCOL_ERROR}: {message}\n")


def decode_step(text: str, limits: Limits) -> Step:
    """Read a guest's step.

    Raises:
        ProtocolError: It is not one.
    """
    exceeded = _exceeded(text, limits)
    if exceeded is not None:
        return Step(outcome=exceeded)
    message = _decode(text)
    outcome = message.get("outcome")
    calls = tuple(map(_call, _list(message, "calls") if "calls" in message else ()))
    if calls and _may_hold_surrogates(text) and not all(_is_unicode(call.arguments) for call in calls):
        raise ProtocolError("a call's arguments hold half of a surrogate pair")
    if len(calls) > 1 and len({call.id for call in calls}) < len(calls):
        raise ProtocolError("two calls of a step have the same id")
    return Step(
        calls,
        tuple(map(_id, _list(message, "cancelled"))) if "cancelled" in message else (),
        _timer(message.get("timer")),
        None if outcome is None else _outcome(outcome, text, limits),
        _line(message.get("line")),
        len(text),
        decoded_bytes(text) if calls else 0,
    )


def decode_references(text: str, limits: Limits) -> tuple[Reference, ...] | Raised:
    """Read the answer to `references`.

    Raises:
        ProtocolError: It is not one.
    """
    exceeded = _exceeded(text, limits)
    if exceeded is not None:
        raise ProtocolError(f"the guest's answer exceeds {exceeded.limit}")
    message = _decode(text)
    if "raised" in message:
        return _raised(message["raised"])
    return tuple(_reference(item) for item in _list(message, "references"))


def argument_bytes(call: Call) -> int:
    """Return the size of a call's arguments as JSON."""
    return len(json.dumps(call.arguments, separators=(",", ":")))


def _exceeded(text: str, limits: Limits) -> Stopped | None:
    """Return the limit that a message breaks by its size alone; nothing has been decoded yet."""
    if len(text) > limits.step_bytes:
        limit = "value_bytes" if text.startswith('{"outcome":') else "argument_bytes"
        return Stopped(limit, getattr(limits, limit))
    if has_more_values(text, MAX_VALUES):
        return Stopped("values", MAX_VALUES)
    if not is_within_depth(text, limits.depth + ENVELOPE_DEPTH):
        return Stopped("depth", limits.depth)
    return None


def _decode(text: str) -> dict[str, Any]:
    try:
        # Not `decode`: around a message, where a guest writes none, it looks for white space as long as this one reads.
        message, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        raise ProtocolError("the guest sent something that is not JSON") from None
    if end < len(text):
        raise ProtocolError("the guest sent something after its JSON")
    if not isinstance(message, dict):
        raise ProtocolError("the guest sent something that is not an object")
    return message


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(digits)
    return value


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


def _timer(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProtocolError("a step's timer is not a number")
    try:
        return float(value)
    except OverflowError:
        raise ProtocolError("a step's timer is out of range") from None


def _list(message: dict[str, Any], key: str) -> list[Any]:
    value = message.get(key)
    if not isinstance(value, list):
        raise ProtocolError(f"a message's {key} is not a list")
    return value


def _integer(value: object) -> int:
    # Rejects bool: True would alias call 1.
    if not isinstance(value, int) or isinstance(value, bool):
        raise ProtocolError("a call's id is not an integer")
    return value


def _id(value: object) -> int:
    number = _integer(value)
    if not 0 < number <= MAX_ID:
        raise ProtocolError("a call's id is out of range")
    return number


def _text(message: dict[str, Any], key: str) -> str:
    value = message.get(key)
    if not isinstance(value, str):
        raise ProtocolError(f"a message's {key} is not text")
    return inert_text(value[:MAX_TEXT])


def _call(item: object) -> Call:
    # Not `match`: a pattern of a mapping takes three times as long.
    if isinstance(item, dict):
        function, arguments = item.get("function"), item.get("arguments")
        if isinstance(function, str) and isinstance(arguments, dict) and "id" in item:
            if len(function) > MAX_FUNCTION:
                raise ProtocolError(f"a call's function has more than {MAX_FUNCTION} characters")
            return Call(_id(item["id"]), inert_text(function), arguments, _line(item.get("line")))
    raise ProtocolError("the guest sent something that is not a call")


def _line(line: object) -> int:
    return line if isinstance(line, int) and not isinstance(line, bool) and 0 <= line <= MAX_LINE else 0


def _may_hold_surrogates(text: str) -> bool:
    return not text.isascii() or "\\ud" in text or "\\uD" in text


def _is_unicode(value: Any) -> bool:
    """Tell whether every string in JSON data can be written as UTF-8."""
    if isinstance(value, str):
        return _SURROGATE.search(value) is None
    if isinstance(value, list):
        return all(map(_is_unicode, value))
    if isinstance(value, dict):
        return all(map(_is_unicode, value)) and all(map(_is_unicode, value.values()))
    return True


def _reference(item: object) -> Reference:
    match item:
        case {"namespace": str(namespace), "function": None | str() as function, "line": line, **more}:
            return Reference(namespace, function, _integer(line), is_bare=more.get("is_bare") is True)
    raise ProtocolError("the guest sent something that is not a reference")


def _outcome(item: object, text: str, limits: Limits) -> Completed | Raised | Stopped:
    match item:
        case {"completed": value}:
            return _completed(value, text, limits)
        case {"raised": raised}:
            return _raised(raised)
        case {"stopped": "memory_bytes"}:
            return Stopped("memory_bytes", limits.memory_bytes)
    raise ProtocolError("the guest sent something that is not an outcome")


def _completed(value: Any, text: str, limits: Limits) -> Completed | Stopped:
    """Check a script's value against its limits."""
    if isinstance(value, list | dict) or len(text) * WRITTEN_BYTES > limits.value_bytes:
        written = json.dumps(value, separators=(",", ":"))
        if len(written) > limits.value_bytes:
            return Stopped("value_bytes", limits.value_bytes)
        if not is_within_depth(written, limits.depth):
            return Stopped("depth", limits.depth)
    return Completed(value if is_inert_json(text) else inert_value(value))


def _raised(item: object) -> Raised:
    if not isinstance(item, dict):
        raise ProtocolError("the guest sent something that is not an exception")
    return Raised(_text(item, "type"), _text(item, "message"), _text(item, "traceback"))
