"""`codemode audit`: what scripts attempted, and whether the records are whole."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from broker.audit.chain import Entry, entries, prune, verify
from broker.audit.log import is_record
from broker.authorization.decision import basis_name
from broker.authorization.grants import BEFOREHAND
from broker.authorization.shown import shown_name, shown_text
from broker.cli.exit_codes import ExitCode
from broker.cli.next_command import whole
from broker.cli.stored import open_store, whole_id
from broker.cli.terminal import Problem, local_time, note, report_problem, write_result, write_table
from codegen.plain_text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.store import Store

_AGE = re.compile(r"(\d{1,6})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_ARGUMENT_CHARACTERS = 120
_REASON_CHARACTERS = 200


@dataclass(frozen=True)
class AuditRequest:
    """The arguments of `codemode audit`."""

    run: str | None
    server: str | None
    since: str | None
    verify: bool
    as_json: bool


@dataclass(frozen=True)
class PruneRequest:
    """The arguments of `audit prune`."""

    older_than: str | None
    keep: int | None


async def show_audit(request: AuditRequest) -> ExitCode:
    """Print records, or whether the chain holds."""
    filters = {"--run": request.run, "--server": request.server, "--since": request.since}
    if request.verify and (given := [option for option, value in filters.items() if value is not None]):
        raise Problem(f"{given[0]} has no effect with --verify", "It follows the whole chain; leave one of them out.")
    since = _time(request.since, "--since") if request.since else ""
    with open_store() as store:
        if request.verify:
            return _verify(store, as_json=request.as_json)
        run = request.run and whole_id(store, request.run)
        found = entries(store, run=run, server=request.server, since=since)
        if request.as_json:
            for entry in found:
                write_result(json.dumps({**entry.record, "hash": entry.hash}))
        else:
            _print(found, is_filtered=bool(run or request.server or since))
    return ExitCode.COMPLETED


async def prune_audit(request: PruneRequest) -> ExitCode:
    """Remove the oldest records."""
    if (request.older_than is None) == (request.keep is None):
        said = "nothing says" if request.keep is None else "--older-than and --keep both say"
        raise Problem(f"{said} which records to remove", "Give --older-than 90d, or --keep 100000.")
    before = _time(request.older_than, "--older-than") if request.older_than else ""
    with open_store() as store:
        removed = prune(store, before=before, keep=request.keep)
    note(whole(f"{counted(removed, 'record')} removed; `codemode audit --verify` checks the rest", request))
    return ExitCode.COMPLETED


def attempts_with_results(found: Iterable[Entry]) -> Iterator[dict[str, Any]]:
    """Yield attempts, each with how it ended; `unknown` where nothing was written after it.

    Records that were changed so that they are none any more are left out, with a note.
    """
    attempts: dict[int, dict[str, Any]] = {}
    changed = 0
    for entry in found:
        record = entry.record
        if not is_record(entry):
            changed += 1
        elif record["kind"] == "attempt":
            attempts[record["number"]] = {**record, "status": record["status"] or "unknown"}
        elif record.get("attempt") in attempts:
            attempts[record["attempt"]] |= {"status": record["status"], "duration_ms": record["duration_ms"]}
    if changed:
        note(f"{counted(changed, 'record')} left out that somebody has changed; see `codemode audit --verify`")
    yield from attempts.values()


def why(record: dict[str, Any]) -> str:
    """Return what decided an attempt, on one line."""
    basis = record["basis"]
    said = basis_name(basis.get("kind", ""), basis.get("name", ""))
    if by := basis.get("by"):
        said += f" given {by}" if by == BEFOREHAND else f" by {by}"
    said += f" ({basis['reason']})" if basis.get("reason") else ""
    return shown_text(said, _REASON_CHARACTERS)


def _print(found: Iterable[Entry], *, is_filtered: bool) -> None:
    rows = [
        (
            local_time(datetime.fromisoformat(record["time"])),
            shown_name(record["run"]),
            shown_name(f"{record['server']}.{record['tool']}"),
            record["decision"],
            shown_name(record["status"]),
            shown_text(record["arguments"], _ARGUMENT_CHARACTERS),
            why(record),
        )
        for record in attempts_with_results(found)
    ]
    if rows:
        columns = ("time", "run", "tool", "decision", "status", "arguments", "decided by")
        write_table(columns, rows, whole={"time", "run"})
    else:
        note("no call like that is on record" if is_filtered else "no call is on record")


def _verify(store: Store, *, as_json: bool) -> ExitCode:
    found = verify(store)
    records = counted(found.count, "record")
    if as_json:
        said = {"records": found.count, "last_hash": found.last_hash, "fault": found.fault or None}
        write_result(json.dumps({**said, "pruned": found.pruned, "pruned_at": found.pruned_at or None}))
    elif found.fault:
        report_problem(f"the audit is not whole: {found.fault}", f"{records} before it can be relied on.")
    else:
        before = f", after {found.pruned} that were pruned, last on {found.pruned_at[:10]}" if found.pruned else ""
        write_result(f"ok: {records} in one unbroken chain{before}; the last hash is {found.last_hash}")
    return ExitCode.MISTAKES if found.fault else ExitCode.COMPLETED


def _time(text: str, option: str) -> str:
    """Return a time as records have it: an age as `2h`, or a date with or without a time."""
    try:
        if match := _AGE.fullmatch(text):
            given = datetime.now(UTC) - timedelta(**{_UNITS[match[2]]: int(match[1])})
        else:
            given = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):  # no time, or one that no calendar has
        raise Problem(
            f"{option}: {text!r} is not a time", "Write an age (30m, 2h, 7d) or a date (2026-11-21)."
        ) from None
    return given.isoformat(timespec="milliseconds")
