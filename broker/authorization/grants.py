"""The grants and denials of a session, as people gave them.

Above: decision.py reads them, desk.py adds them and uses them up. Below: patterns, predicates, definitions. An empty
book allows nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from broker.authorization.definitions import Definitions
from broker.authorization.patterns import check_tool_pattern, is_exact, matcher
from broker.authorization.predicates import Predicate, anything, check_predicate
from broker.errors import PatternError
from broker.texts import refusal_texts
from broker.unique_keys import DuplicateKeyError, loads_unique
from codegen.plain_text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.authorization.argument_checks import Check
    from broker.authorization.calls import PendingCall

Scope: TypeAlias = Literal["run", "session", "always"]

MAX_CALLS = 999_999_999
"""The highest number of calls in a grant; for more, leave the number out."""

BEFOREHAND = "beforehand"
"""Who gave a grant that a session began with."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Permission to call the tools that match a pattern of `server.tool`.

    Attributes:
        pattern: `*`, `?` and `[…]` match; case counts. `*` alone is every tool of every server.
        digest: The definition of the tool for which it holds. Without one, it holds for each tool as that was defined
            when the grant was given, or when it was first seen afterwards. The grant lapses when the tool changes.
        arguments: What the arguments must be.
        calls: How many calls it is good for.
        scope: `run` holds until the end of the run in which it was given, `session` until the end of the session;
            `always` is kept in the store, and needs the exact name of one tool and its digest.
        expires_at: When it ends in any case; a time with its zone.
        after: Labels that the run may have received. A flow rule that asks about another label is not answered by it.

    Raises:
        PatternError: It could never hold, or would hold for more than it may.
        TypeError: `pattern` or `digest` is no text, `arguments` no predicate, `calls` no whole number, `expires_at` no
            time, or `after` no frozenset of texts.
    """

    pattern: str
    digest: str | None = None
    arguments: Predicate | None = None
    calls: int | None = None
    scope: Scope = "session"
    expires_at: datetime | None = None
    after: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse what would silently hold for nothing, or for too much."""
        check_tool_pattern(self.pattern)
        if self.scope not in get_args(Scope):
            raise PatternError(f"the scope of a grant is one of {', '.join(get_args(Scope))}")
        check_predicate(self.arguments)
        if self.digest is not None:
            _check_digest(self.digest)
        _check_labels(self.after)
        if self.calls is not None and type(self.calls) is not int:
            raise TypeError(f"the calls of a grant are a whole number, not a {type(self.calls).__name__}")
        if self.expires_at is not None and not isinstance(self.expires_at, datetime):
            raise TypeError(f"the expiry of a grant is a datetime, not a {type(self.expires_at).__name__}")
        if self.calls is not None and self.calls < 1:
            raise PatternError(f"a grant for {self.calls} calls allows nothing")
        if self.calls is not None and self.calls > MAX_CALLS:
            raise PatternError(f"a grant is for at most {MAX_CALLS:,} calls, or for any number")
        if self.expires_at is not None and self.expires_at.tzinfo is None:
            raise PatternError("the expiry of a grant needs a time zone")
        if self.scope == "always" and (self.digest is None or not is_exact(self.pattern)):
            raise PatternError("a permanent grant names one tool and its digest")

    @classmethod
    def parse(cls, text: str) -> Grant:
        """Read `PATTERN[@sha256:DIGEST] [{"/pointer": {…}, …}]`, as on the command line.

        Raises:
            PatternError: It is empty, can match no `server.tool`, or what follows is no predicate.
        """
        head, brace, rest = text.partition(" {")
        predicate = Predicate.parse(_decoded(brace.strip() + rest)) if brace else None
        pattern, at, digest = head.strip().rpartition("@sha256:")
        return cls(pattern, f"sha256:{digest}", predicate) if at else cls(head.strip(), arguments=predicate)

    def __str__(self) -> str:
        """Return what `parse` reads, with the rest in words."""
        text = self.pattern + (f"@{self.digest}" if self.digest else "")
        text += f" {self.arguments}" if self.arguments else ""
        scope = {"session": [], "run": ["this run"], "always": ["always"]}[self.scope]
        words = [*scope, *self.bounds]
        return text + (f" ({'; '.join(words)})" if words else "")

    @property
    def bounds(self) -> list[str]:
        """How often, until when and after what it holds, in words; empty where nothing bounds it."""
        words = [counted(self.calls, "call")] if self.calls else []
        words += [f"until {self.expires_at:%Y-%m-%d %H:%M %Z}"] if self.expires_at else []
        words += [f"also after {', '.join(sorted(self.after))}"] if self.after else []
        return words


@dataclass(frozen=True, slots=True)
class Denial:
    """A person's no to the tools that match a pattern, with a note for the script; stronger than any grant or rule.

    Raises:
        PatternError: It could match no tool, or its scope is none of these.
        TypeError: `pattern` or `note` is no text, or `arguments` no predicate.
    """

    pattern: str
    note: str = ""
    arguments: Predicate | None = None
    scope: Literal["run", "session"] = "session"

    def __post_init__(self) -> None:
        """Refuse what would silently match nothing, and what no script could be told."""
        check_tool_pattern(self.pattern)
        if not isinstance(self.note, str):
            raise TypeError(f"the note of a denial is text, not a {type(self.note).__name__}")
        check_predicate(self.arguments)
        if self.scope not in ("run", "session"):
            raise PatternError("the scope of a denial is run or session")


@dataclass(slots=True, eq=False)
class Held:
    """A grant in a book, with what is left of it and where it holds."""

    id: str
    grant: Grant
    run: str
    sequence: int
    holds: Check
    expires: float
    calls_left: float
    by: str
    title: str
    stands_for: str = ""
    """The grant of which a resumed run holds this copy, as text."""

    def covers(self, call: PendingCall, labels: frozenset[str], now: float) -> bool:
        """Tell whether it covers a call; the caller has checked that it matches the tool."""
        return (
            self.holds(call.arguments)
            and self.calls_left > 0
            and now < self.expires
            and (self.grant.scope != "run" or self.run == call.caller.run)
            and labels <= self.grant.after
        )

    def lack(self, call: PendingCall, now: float) -> str:
        """Return why it does not cover a call of its tool, whatever the run and its labels; empty if it may."""
        if not self.holds(call.arguments):
            return refusal_texts.FOR_OTHER_ARGUMENTS
        if self.calls_left <= 0:
            return refusal_texts.USED_UP
        return "" if now < self.expires else refusal_texts.ENDED


@dataclass(slots=True, eq=False)
class GrantBook:
    """The grants and denials of one session."""

    definitions: Definitions = field(default_factory=Definitions)
    _held: dict[str, Held] = field(default_factory=dict)
    _denials: list[tuple[Denial, str]] = field(default_factory=list)
    _candidates: dict[tuple[str, str, str], tuple[Held, ...]] = field(default_factory=dict)
    _number: int = 0

    @classmethod
    def of(cls, grants: Iterable[Grant] = (), denials: Iterable[Denial] = ()) -> GrantBook:
        """Return a book with these in it."""
        book = cls()
        for grant in grants:
            book.add(grant)
        for denial in denials:
            book.deny(denial)
        return book

    @property
    def held(self) -> tuple[Held, ...]:
        """The grants in the order in which they were given; some may be used up or expired."""
        return tuple(self._held.values())

    @property
    def denials(self) -> tuple[Denial, ...]:
        """The denials that hold for the session."""
        return tuple(denial for denial, _ in self._denials if denial.scope == "session")

    def add(
        self,
        grant: Grant,
        *,
        run: str = "",
        by: str = BEFOREHAND,
        grant_id: str | None = None,
        stands_for: str = "",
    ) -> Held:
        """Add a grant that somebody gave in a run, or that was given beforehand."""
        self._number += 1
        held_id = grant_id or f"g{self._number}"
        held = Held(
            id=held_id,
            grant=grant,
            run=run,
            sequence=self.definitions.sequence,
            holds=grant.arguments.holds if grant.arguments else anything,
            expires=grant.expires_at.timestamp() if grant.expires_at else math.inf,
            calls_left=grant.calls if grant.calls is not None else math.inf,
            by=by,
            title=f"{held_id} {grant}",
            stands_for=stands_for,
        )
        self._held[held.id] = held
        self._candidates.clear()
        return held

    def deny(self, denial: Denial, *, run: str = "") -> None:
        """Add a denial that was given in a run, or beforehand."""
        self._denials.append((denial, run))

    def revoke(self, grant_id: str) -> bool:
        """Remove a grant, so that the next call is decided without it; return whether there was one."""
        self._candidates.clear()
        return self._held.pop(grant_id, None) is not None

    def holds(self, held: Held) -> bool:
        """Tell whether a grant is still in the book."""
        return self._held.get(held.id) is held

    def end_run(self, run: str) -> None:
        """Forget what held for one run only."""
        over = [held.id for held in self._held.values() if held.grant.scope == "run" and held.run == run]
        for grant_id in over:
            self.revoke(grant_id)
        self._denials = [(denial, of) for denial, of in self._denials if denial.scope != "run" or of != run]

    def covering(self, call: PendingCall, labels: frozenset[str], now: float) -> Held | None:
        """Return a grant that covers a call after these labels; one without a number of calls is preferred."""
        key = (call.server, call.tool, call.digest)
        candidates = self._candidates.get(key)
        if candidates is None:
            matching = [held for held in self._held.values() if self._matches(held, call)]
            candidates = self._candidates[key] = tuple(sorted(matching, key=_preference))
        for held in candidates:
            if held.covers(call, labels, now):
                return held
        return None

    def not_covered(self, call: PendingCall, now: float) -> str:
        """Return why a grant for the tool does not cover a call: its tests, its calls or its time.

        Empty if no grant is for the tool, or where none of these is why.
        """
        lacks = ((held.grant, held.lack(call, now)) for held in self._held.values() if self._matches(held, call))
        return next((refusal_texts.of_a_grant(str(grant), lack) for grant, lack in lacks if lack), "")

    def denial_of(self, call: PendingCall) -> Denial | None:
        """Return a denial that covers a call; one with a note is preferred."""
        if not self._denials:
            return None
        holding = [
            denial
            for denial, run in self._denials
            if matcher(denial.pattern)(call.qualified_name)
            and (denial.arguments is None or denial.arguments.may_hold(call.arguments))
            and (denial.scope != "run" or run == call.caller.run)
        ]
        return min(holding, key=lambda denial: (not denial.note, denial.note, denial.pattern)) if holding else None

    def may_cover(self, call: PendingCall, now: float) -> bool:
        """Tell whether a grant of the session may hold for a call of this tool, whatever its arguments."""
        return any(
            held.calls_left > 0 and now < held.expires and held.grant.scope != "run" and self._matches(held, call)
            for held in self._held.values()
        )

    def denies_all(self, call: PendingCall) -> bool:
        """Tell whether every call of this tool is denied in the session, whatever its arguments."""
        return any(denial.arguments is None and matcher(denial.pattern)(call.qualified_name) for denial in self.denials)

    def _matches(self, held: Held, call: PendingCall) -> bool:
        grant = held.grant
        if not matcher(grant.pattern)(call.qualified_name):
            return False
        pinned = grant.digest or self.definitions.pinned(call.qualified_name, held.sequence)
        return pinned in {None, call.digest}


def _preference(held: Held) -> tuple[bool, str, str, str]:
    return (held.grant.calls is not None, held.grant.pattern, held.grant.digest or "", held.id)


def _check_digest(digest: object) -> None:
    if not isinstance(digest, str):
        raise TypeError(f"the digest of a grant is text, not a {type(digest).__name__}")
    if not digest.startswith("sha256:"):
        raise PatternError(f"the digest of a grant begins with 'sha256:', as that of each tool; not {digest!r}")


def _check_labels(after: object) -> None:
    if not isinstance(after, frozenset) or not all(isinstance(label, str) for label in after):
        raise TypeError(f"a grant holds after labels, as after=frozenset({{'private'}}), not {after!r}")


def _decoded(text: str) -> dict[str, Any]:
    try:
        tests = loads_unique(text)
    except DuplicateKeyError as error:
        raise PatternError(f"what follows the pattern is ambiguous: {error}") from None
    except (ValueError, RecursionError):
        tests = None
    if not isinstance(tests, dict):
        raise PatternError('what follows the pattern is not a JSON object; write {"/argument": {"equals": "value"}}')
    return tests
