"""Records chained by hashes: appended, read, verified, and pruned from the beginning.

Above: log.py, which says what is in them, and `codemode audit`. Below: store.py. Each record holds the hash of the
one before, so that a change, a gap or an insertion shows. A cut at the end does not: keep the last hash somewhere else
to see that. What is pruned leaves a record behind that names the last hash of it, from which the rest goes on.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from broker.errors import StoreError
from broker.store import Tables
from broker.store_connection import NEW_ONE, name_of
from codegen.tool_spec import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.store import Store

FIRST = "0" * 64
"""The previous hash of the first record."""

_TRIES = 10
_LAST = 2**63 - 1
_BEFORE_ALL = -(2**63)
"""Ours begin at 1; one of a lower number was inserted, and is found as such."""

PRUNED = "pruned"
"""The kind of a record that stands for those removed before it; it has no run and no server."""

TABLES = Tables(
    "audit",
    (
        (
            """
            CREATE TABLE audit (
                number INTEGER PRIMARY KEY, run TEXT NOT NULL, server TEXT NOT NULL, time TEXT NOT NULL,
                record TEXT NOT NULL, hash TEXT NOT NULL
            ) STRICT
            """,
            "CREATE INDEX audit_run ON audit (run)",
            "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'append only'); END",
            "CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'append only'); END",
        ),
        (
            "CREATE TABLE audit_pruned (through INTEGER NOT NULL) STRICT",
            "DROP TRIGGER audit_no_delete",
            """
            CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
            WHEN OLD.number > (SELECT COALESCE(MAX(through), 0) FROM audit_pruned)
            BEGIN SELECT RAISE(ABORT, 'append only'); END
            """,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored record: its canonical JSON, the hash over that, and the columns by which it is found."""

    record: dict[str, Any]
    text: str
    hash: str
    columns: tuple[int, str, str, str]


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found.

    Attributes:
        count: How many records follow each other, from the first one kept.
        last_hash: Of the last of them.
        fault: The first fault, empty where there is none.
        pruned: How many records were pruned before them.
        pruned_at: When that was, the last time.
    """

    count: int
    last_hash: str
    fault: str = ""
    pruned: int = 0
    pruned_at: str = ""


def append(store: Store, fields: dict[str, Any]) -> int:
    """Append a record and return its number; `fields` have at least `kind`, `run` and `server`.

    Raises:
        StoreError: It cannot be written.
    """
    with store.transaction():
        last = store.execute("SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1")
        number, previous = (last[0][0] + 1, last[0][1]) if last else (1, FIRST)
        if number > _LAST:
            raise StoreError(f"{name_of(store.path)}: the audit has a record of the last number; {NEW_ONE}.")
        time = _now()
        text = canonical_json({"number": number, "time": time, "previous": previous, **fields})
        values = (number, fields["run"], fields["server"], time, text, _hash(text))
        store.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)", values)
    return int(number)


def entries(store: Store, *, run: str | None = None, server: str | None = None, since: str = "") -> Iterator[Entry]:
    """Yield the records in order: all, or those of a run, of a server, or from a time on.

    Raises:
        StoreError: The store cannot be used.
    """
    store.prepare(TABLES)
    number = _BEFORE_ALL
    query = "SELECT number, run, server, time, record, hash FROM audit WHERE number > ? AND time >= ?"
    wanted = [("run", run), ("server", server)]
    query += "".join(f" AND {column} = ?" for column, value in wanted if value is not None)
    values = [value for _, value in wanted if value is not None]
    while page := store.execute(f"{query} ORDER BY number LIMIT 1000", (number, since, *values)):
        for *columns, text, digest in page:
            yield Entry(_decoded(text), text, digest, tuple(columns))
        number = page[-1][0]


def verify(store: Store) -> Verification:
    """Follow the chain through all records.

    Raises:
        StoreError: The store cannot be used.
    """
    store.prepare(TABLES)
    tries = 0
    while True:
        begins = _begins(store)
        found = _followed(store, begins)
        tries += 1
        # What is pruned meanwhile looks like a gap.
        if not found.fault or _begins(store) == begins or tries == _TRIES:
            return found


def _begins(store: Store) -> int:
    """Return the number of the first record kept."""
    return int(store.execute("SELECT MIN(number) FROM audit")[0][0] or 1)


def _followed(store: Store, begins: int) -> Verification:
    """Follow the chain from a first record on, as long as nothing is pruned."""
    first_previous = previous = FIRST
    count, anchor = 0, {}
    for entry in entries(store):
        record, number = entry.record, begins + count
        if count == 0 and begins > 1:
            first_previous = previous = str(record.get("previous"))
        if fault := _fault(entry, number, previous):
            return Verification(count, previous, fault)
        if record.get("kind") == PRUNED:
            anchor = record
        previous, count = entry.hash, count + 1
    if begins > 1 and (anchor.get("through"), anchor.get("through_hash")) != (begins - 1, first_previous):
        return Verification(0, FIRST, _missing(begins - 1))
    return Verification(count, previous, pruned=begins - 1, pruned_at=str(anchor.get("time", "")) if begins > 1 else "")


def prune(store: Store, *, before: str = "", keep: int | None = None, at_most: int | None = None) -> int:
    """Remove the oldest records and return how many; what is left can be verified as before.

    Args:
        store: Where they are.
        before: Those up to the first one of this time or later.
        keep: All but so many.
        at_most: No more than so many at a time.

    Raises:
        StoreError: The store cannot be used.
    """
    store.prepare(TABLES)
    with store.transaction():
        first, last = store.execute("SELECT MIN(number), MAX(number) FROM audit")[0]
        if last is None:
            return 0
        through = first - 1
        if before:
            kept = store.execute("SELECT MIN(number) FROM audit WHERE time >= ?", (before,))[0][0]
            through = (last + 1 if kept is None else kept) - 1
        if keep is not None:
            through = max(through, last - keep)
        # The last one stays: the next record follows it.
        through = min(through, last - 1, last if at_most is None else first - 1 + at_most)
        if through < first:
            return 0
        # The very one may be missing: somebody has written into the store.
        last_gone = "SELECT number, hash FROM audit WHERE number <= ? ORDER BY number DESC LIMIT 1"
        [[through, digest]] = store.execute(last_gone, (through,))
        append(store, {"kind": PRUNED, "run": "", "server": "", "through": through, "through_hash": digest})
        store.execute("INSERT INTO audit_pruned VALUES (?)", (through,))
        store.execute("DELETE FROM audit WHERE number <= ?", (through,))
        return int(through - first + 1)


def _missing(last: int) -> str:
    """Return that the records up to one are missing."""
    if last == 1:
        return "record 1 is missing, and none says that it was pruned"
    return f"records 1 to {last} are missing, and none says that they were pruned"


def _fault(entry: Entry, number: int, previous: str) -> str:
    """Return what is wrong with a record that should have this number and follow this hash."""
    record = entry.record
    found_by = tuple(record.get(key) for key in ("number", "run", "server", "time"))
    if record.get("number") != number or found_by != entry.columns:
        return f"record {number} is missing, or was changed"
    if _hash(entry.text) != entry.hash:
        return f"record {number} was changed: its hash is another one"
    return "" if record.get("previous") == previous else f"record {number} does not follow the one before"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _decoded(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):  # somebody has written into the store
        return {}
    return record if isinstance(record, dict) else {}
