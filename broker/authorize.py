"""Whether a call may be made: one function, without I/O, clock or MCP.

Above: tool_calls.py, which asks before every call. Below: nothing. The answer to everything that nobody has
allowed is `Ask`, and an `Ask` that nobody answers is a refusal.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

from broker.errors import PatternError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave to call the tools that match a pattern of `server.tool`.

    Attributes:
        pattern: `*`, `?` and `[…]` match; case counts. `*` alone is every tool of every server.
        digest: When given, the grant holds for this definition of a tool and lapses when it changes.

    Raises:
        PatternError: The pattern is empty or cannot match any `server.tool`.
    """

    pattern: str
    digest: str | None = None

    def __post_init__(self) -> None:
        """Refuse patterns that would silently match nothing."""
        _check_pattern(self.pattern)

    @classmethod
    def parse(cls, text: str) -> Grant:
        """Read `PATTERN` or `PATTERN@sha256:DIGEST`, as on the command line.

        Raises:
            PatternError: It is empty or cannot match any `server.tool`.
        """
        pattern, at, digest = text.rpartition("@sha256:")
        return cls(pattern, f"sha256:{digest}") if at else cls(text)

    def covers(self, call: PendingCall) -> bool:
        """Tell whether the grant holds for a call."""
        return fnmatchcase(call.qualified_name, self.pattern) and self.digest in {None, call.digest}


@dataclass(frozen=True, slots=True)
class Denial:
    """A person's no to the tools that match a pattern, with words for the script; stronger than any grant."""

    pattern: str
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse patterns that would silently match nothing."""
        _check_pattern(self.pattern)

    def covers(self, call: PendingCall) -> bool:
        """Tell whether the denial holds for a call."""
        return fnmatchcase(call.qualified_name, self.pattern)


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call before it is made, as it is judged and shown to people.

    `arguments` were written by the script, `tool` and what stands behind `digest` by the server.
    """

    server: str
    tool: str
    digest: str
    arguments: dict[str, Any]

    @property
    def qualified_name(self) -> str:
        """`server.tool`."""
        return f"{self.server}.{self.tool}"


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may be made."""

    grant: Grant


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not be made; `reason` is a sentence for the script."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Nobody has said yet."""


Decision: TypeAlias = Allow | Deny | Ask


def authorize(call: PendingCall, *, grants: Iterable[Grant], denials: Iterable[Denial] = ()) -> Decision:
    """Decide one call. A denial beats every grant; the order within each does not matter."""
    notes = sorted(denial.note for denial in denials if denial.covers(call))
    if notes:
        said = next((note for note in notes if note), "")
        return Deny(f"{call.qualified_name} was refused{f': {said}' if said else ' by the person who was asked'}.")
    covering = [grant for grant in grants if grant.covers(call)]
    if covering:
        return Allow(min(covering, key=lambda grant: (grant.pattern, grant.digest or "")))
    return Ask()


def _check_pattern(pattern: str) -> None:
    if not pattern:
        raise PatternError("a pattern of tools is empty; '*' means every tool")
    if "." not in pattern and not set(pattern) & set("*?["):
        raise PatternError(
            f"the pattern {pattern!r} can match no tool; write 'server.tool', or '{pattern}.*' for a whole server"
        )
