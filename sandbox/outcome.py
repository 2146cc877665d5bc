"""How a run ended, and what it asked for on the way: plain values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Completed:
    """The script ran to its end; `value` is its `return` value or that of its last expression, as JSON data."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The script raised. `type` is the exception's class, `traceback` shows the script's lines only."""

    type: str
    message: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """A limit ended the run.

    Attributes:
        limit: A field of `Limits`; or `"stack"`, native stack of recursion in C, in bytes; or `"values"`, the numbers,
            strings, lists and objects in one message; or `"open_bytes"`, memory for the calls that are open at the same
            time; or `"recording_bytes"`, what a journal keeps of one run; or `"worker"`, the one process that ended
            while the run computed.
        amount: What was allowed, in the limit's unit.
        line: Where in the script, for a limit met while it waits or by a call. Not known while the script computes.
    """

    limit: str
    amount: float
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Parked:
    """The run was put aside: nothing of it goes on before these calls, by their ids, have an answer."""

    calls: tuple[int, ...]


Outcome: TypeAlias = Completed | Raised | Stopped | Parked


@dataclass(frozen=True, slots=True)
class Call:
    """A stub call of the script.

    Attributes:
        id: Counts the calls of one run from 1.
        function: `namespace.function`, as the manifest names it; written by the guest, so look it up, never trust it.
        arguments: JSON object with the tool's own keys.
        line: Where the script made the call, as the guest says; 0 where it does not. For people only.
    """

    id: int
    function: str
    arguments: dict[str, Any]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Returned:
    """The answer to a call: a JSON value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """A call that fails in the script, as the exception class `kind` of the `ToolError` tree.

    `details` may hold `server`, `tool`, `content` and `structured_content`.
    """

    kind: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)


Completion: TypeAlias = Returned | Failed


@dataclass(frozen=True, slots=True)
class Reference:
    """A tool, or a whole server where `function` is None or `"*"`, that a script names.

    Where it `is_bare`, the script imports a server's names with `*` and uses this one alone. It names a tool only if
    the server has one of this name, and no other server does whose bare names come before it among the references.
    """

    namespace: str
    function: str | None
    line: int
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class Printed:
    """Text that a script printed, to `"stdout"` or `"stderr"`, made inert."""

    stream: str
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run used: seconds, bytes of printed text as UTF-8, and counts."""

    wall_seconds: float
    cpu_seconds: float
    output_bytes: int
    calls: int
    steps: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """The outcome of a run with everything it printed; control characters in the texts are shown, not live."""

    outcome: Outcome
    stdout: str
    stderr: str
    usage: Usage
