"""What was attempted, decided and done: one record for each attempt of a script to call a tool, before it is sent.

Above: tool_calls.py writes, the command line reads. Below: store.py. Records are appended and never changed; each holds
the hash of the one before, so that a change, a gap or an insertion shows. A cut at the end does not: keep the last hash
somewhere else to see that.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from broker.store import Tables
from codegen.tool_spec import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.authorization.calls import Caller, PendingCall
    from broker.authorization.decision import Basis
    from broker.redaction import Redactor
    from broker.store import Store

ARGUMENT_CHARACTERS = 4_096
"""How much of the redacted arguments a record holds; their hash is over all of them as they were."""

FIRST = "0" * 64
"""The previous hash of the first record."""

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
    ),
)


class _Record(BaseModel):
    """What all records have.

    Attributes:
        number: From 1, without gaps.
        time: UTC, ISO 8601.
        previous: The hash of the record before; 64 zeros for the first.
        hash: sha256 over the canonical JSON of all other fields.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int
    time: str
    previous: str
    hash: str


class AttemptRecord(_Record):
    """One attempt of a script to call a tool. An allowed one is written before the call is sent.

    Attributes:
        kind: `attempt`.
        run: The run's id.
        session: The session's handle; empty where there is one session.
        principal: Who was authenticated; empty where nobody is.
        script: Digest of the script's text.
        server: The server's name in the config; the script's word where there is no such server.
        tool: The tool's name; the script's word where there is no such tool.
        digest: Digest of the tool's definition.
        decision: What came out; `undecided` when the call ended before.
        basis: What decided: its kind, name and reason, and who answered.
        status: How the call ended where it was not sent; empty where it was.
        arguments: Redacted, as JSON, cut.
        arguments_sha256: Hash over the canonical JSON of the arguments.
    """

    kind: Literal["attempt"] = "attempt"
    run: str
    session: str
    principal: str
    script: str
    server: str
    tool: str
    digest: str
    decision: Literal["allowed", "denied", "undecided"]
    basis: dict[str, str]
    status: str
    arguments: str
    arguments_sha256: str


class ResultRecord(_Record):
    """How a call ended that was sent. Without one, what became of it is unknown: the process ended first.

    Attributes:
        kind: `result`.
        run: The run's id.
        server: As in the attempt.
        attempt: The number of the attempt's record.
        status: As in the envelope.
        result_bytes: The size of what the script got, as JSON.
        duration_ms: From the script's call to its answer, questions included.
    """

    kind: Literal["result"] = "result"
    run: str
    server: str
    attempt: int
    status: str
    result_bytes: int
    duration_ms: float


AuditRecord = Annotated[AttemptRecord | ResultRecord, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored record: its canonical JSON, the hash over that, and the columns by which it is found."""

    record: dict[str, Any]
    text: str
    hash: str
    columns: tuple[int, str, str, str]


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found: how many records, the hash of the last one, and the first fault, empty where there is none."""

    count: int
    last_hash: str
    fault: str


class AuditLog:
    """The records of one store."""

    def __init__(self, store: Store, redact: Redactor) -> None:
        """Prepare the tables.

        Raises:
            StoreError: The store cannot be used.
        """
        store.prepare(TABLES)
        self._store = store
        self._redact = redact

    def attempt(self, call: PendingCall, *, decision: str, basis: Basis | None, status: str = "") -> int:
        """Write down an attempt and return its number.

        Raises:
            StoreError: It cannot be written, and so the call must not be made.
        """
        canonical = canonical_json(call.arguments)
        caller: Caller = call.caller
        return self._append(
            {
                "kind": "attempt",
                "run": caller.run,
                "session": caller.session,
                "principal": caller.principal,
                "script": caller.script,
                "server": call.server,
                "tool": call.tool,
                "digest": call.digest,
                "decision": decision,
                "basis": {} if basis is None else self._basis(basis),
                "status": status,
                "arguments": canonical_json(self._redact.value(call.arguments))[:ARGUMENT_CHARACTERS],
                "arguments_sha256": hashlib.sha256(canonical.encode("ascii")).hexdigest(),
            },
        )

    def result(self, call: PendingCall, attempt: int, *, status: str, result_bytes: int, duration_ms: float) -> None:
        """Write down how a call ended.

        Raises:
            StoreError: It cannot be written.
        """
        record = {"attempt": attempt, "status": status, "result_bytes": result_bytes, "duration_ms": duration_ms}
        self._append({"kind": "result", "run": call.caller.run, "server": call.server, **record})

    def _basis(self, basis: Basis) -> dict[str, str]:
        fields = {"kind": basis.kind, "name": basis.name, "reason": basis.reason, "by": basis.by}
        return {key: self._redact(value) for key, value in fields.items() if value}

    def _append(self, fields: dict[str, Any]) -> int:
        with self._store.transaction():
            last = self._store.execute("SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1")
            number, previous = (last[0][0] + 1, last[0][1]) if last else (1, FIRST)
            time = datetime.now(UTC).isoformat(timespec="milliseconds")
            text = canonical_json({"number": number, "time": time, "previous": previous, **fields})
            values = (number, fields["run"], fields["server"], time, text, _hash(text))
            self._store.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)", values)
        return int(number)


def entries(store: Store, *, run: str | None = None, server: str | None = None, since: str = "") -> Iterator[Entry]:
    """Yield the records in order, or those of a run, of a server, from a time on.

    Raises:
        StoreError: The store cannot be used.
    """
    store.prepare(TABLES)
    number = 0
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
    previous, count = FIRST, 0
    for entry in entries(store):
        count += 1
        record = entry.record
        found_by = tuple(record.get(key) for key in ("number", "run", "server", "time"))
        if record.get("number") != count or found_by != entry.columns:
            return Verification(count - 1, previous, f"record {count} is missing, or was changed")
        if _hash(entry.text) != entry.hash:
            return Verification(count - 1, previous, f"record {count} was changed: its hash is another one")
        if record.get("previous") != previous:
            return Verification(count - 1, previous, f"record {count} does not follow the one before")
        previous = entry.hash
    return Verification(count, previous, "")


def audit_json_schema() -> dict[str, Any]:
    """Return the published JSON Schema of one line of the export."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One record of `codemode audit --json`, a line each",
        **TypeAdapter[Any](AuditRecord).json_schema(),
    }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _decoded(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
