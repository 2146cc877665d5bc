"""The grants and denials of a run in its recording: written when it begins, given back when it is resumed.

Above: run_journal.py, recorder.py, resuming.py, policy_replay.py. Below: parts.py, and the grants of
broker.authorization. A grant that is given back holds only in its run, for the tools as they were defined when the run
began, and for as many calls as are left of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

from broker.authorization.grants import Denial, Grant
from broker.authorization.patterns import exact_pattern, is_exact
from broker.authorization.predicates import Predicate
from broker.errors import PatternError
from broker.recordings.parts import RecordedDenial, RecordedGrant
from broker.redacted_places import MARK as REDACTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.authorization.grants import GrantBook, Held
    from broker.recordings.parts import RecordedTool
    from broker.recordings.recording import Recording


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A grant that holds again in a resumed run.

    Attributes:
        number: Its number in the recording.
        grant: What is left of it: one tool, and the remaining calls.
        of: The grant as it was given.
        by: Who gave it.
    """

    number: int
    grant: Grant
    of: Grant
    by: str


def grants_to_record(book: GrantBook, tools: Sequence[RecordedTool]) -> list[Held]:
    """Return the session's grants to record for a run that may call these tools.

    A grant without a digest that has lapsed for one of the tools is left out: it would come back for the changed tool.
    """
    return [held for held in book.held if held.grant.scope != "run" and not _has_lapsed(held, book, tools)]


def _has_lapsed(held: Held, book: GrantBook, tools: Sequence[RecordedTool]) -> bool:
    if held.grant.digest is not None:
        return False  # it comes back for that definition alone
    named = [(f"{tool.server}.{tool.tool}", tool.digest) for tool in tools]
    return any(
        fnmatchcase(name, held.grant.pattern) and book.definitions.pinned(name, held.sequence) not in {None, digest}
        for name, digest in named
    )


def recorded_grant(held: Held) -> RecordedGrant:
    """Return a grant as it is written down."""
    grant = held.grant
    return RecordedGrant(
        pattern=grant.pattern,
        digest=grant.digest,
        arguments=grant.arguments.document() if grant.arguments else None,
        calls=None if grant.calls is None else int(held.calls_left),
        scope=grant.scope,
        expires_at=grant.expires_at.isoformat() if grant.expires_at else None,
        after=tuple(sorted(grant.after)),
        by=held.by,
    )


def recorded_denial(denial: Denial) -> RecordedDenial:
    """Return a denial as it is written down."""
    arguments = denial.arguments.document() if denial.arguments else None
    return RecordedDenial(pattern=denial.pattern, note=denial.note, arguments=arguments)


def numbers_of(recording: Recording, held: Held) -> list[int]:
    """Return the numbers of a recording's unrevoked grants that are the same as one that a session holds.

    How many calls are left does not count.
    """
    wanted = _identity(recorded_grant(held))
    return [
        number
        for number, recorded in enumerate(recording.grants)
        if number not in recording.revoked and _identity(recorded) == wanted
    ]


def _identity(recorded: RecordedGrant) -> RecordedGrant:
    return recorded.model_copy(update={"calls": None})


def grant_of(recorded: RecordedGrant) -> Grant:
    """Return a grant that was written down.

    Raises:
        PatternError: It is none that could hold.
    """
    try:
        expires_at = datetime.fromisoformat(recorded.expires_at) if recorded.expires_at else None
    except ValueError as error:
        raise PatternError(str(error)) from None
    return Grant(
        recorded.pattern,
        recorded.digest,
        None if recorded.arguments is None else Predicate.parse(recorded.arguments),
        recorded.calls,
        recorded.scope,
        expires_at,
        frozenset(recorded.after),
    )


def denial_of(recorded: RecordedDenial, scope: Literal["run", "session"]) -> Denial:
    """Return a denial that was written down; one that cannot be read denies every tool, since none would allow more."""
    try:
        arguments = None if recorded.arguments is None else Predicate.parse(recorded.arguments)
        return Denial(recorded.pattern, recorded.note, arguments, scope)
    except PatternError:
        return Denial("*", recorded.note, None, scope)


def grants_given_back(recording: Recording) -> Iterator[GivenBack]:
    """Yield the grants that hold again in the resumed run; an imported recording gives none back.

    Left out are grants that were revoked or used up; permanent ones, which the store keeps; those of a session for a
    number of calls, which other runs may have made since; and those whose tests had a secret in them, because without
    it they may allow more.
    """
    if recording.is_imported:
        return
    for number, recorded in enumerate(recording.grants):
        is_shared = recorded.calls is not None and recorded.scope != "run"
        has_lost_a_secret = REDACTED in json.dumps(recorded.arguments)
        if number in recording.revoked or recorded.scope == "always" or is_shared or has_lost_a_secret:
            continue
        left = None if recorded.calls is None else recorded.calls - recording.uses[number]
        if left is not None and (left < 1 or not is_exact(recorded.pattern)):
            continue
        try:
            given = grant_of(recorded)
        except PatternError:
            continue  # none of ours: it is asked about again
        for tool in recording.begun.tools:
            name = f"{tool.server}.{tool.tool}"
            if fnmatchcase(name, given.pattern) and given.digest in {None, tool.digest}:
                grant = replace(given, pattern=exact_pattern(name), digest=tool.digest, calls=left, scope="run")
                yield GivenBack(number, grant, given, recorded.by)


def denials_given_back(recording: Recording) -> Iterator[Denial]:
    """Yield the denials that hold again, for the run."""
    return (denial_of(recorded, "run") for recorded in recording.denials)
