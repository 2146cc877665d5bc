"""What was attempted, decided and done: one record for each attempt of a script to call a tool, before it is sent.

Above: attempts.py writes, the command line reads. Below: chain.py, which chains the records.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from broker.audit.chain import TABLES, append, prune
from broker.audit.settings import AuditSettings
from codegen.tool_spec import canonical_json

if TYPE_CHECKING:
    from broker.audit.chain import Entry
    from broker.authorization.calls import Caller, PendingCall
    from broker.authorization.decision import Basis
    from broker.redaction import Redactor
    from broker.store import Store

ARGUMENT_CHARACTERS = 4_096
"""How much of the redacted arguments a record holds; their hash is over all of them as they were."""

_PRUNED_EVERY = 500
_PRUNED_AT_ONCE = 5_000


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


class PrunedRecord(_Record):
    """Says that older records were removed.

    Attributes:
        kind: `pruned`.
        run: Empty.
        server: Empty.
        through: The number of the last one removed.
        through_hash: Its hash, which the first record kept has as its `previous`.
    """

    kind: Literal["pruned"] = "pruned"
    run: str
    server: str
    through: int
    through_hash: str


AuditRecord = Annotated[AttemptRecord | ResultRecord | PrunedRecord, Field(discriminator="kind")]
_RECORD: TypeAdapter[AttemptRecord | ResultRecord | PrunedRecord] = TypeAdapter(AuditRecord)


def is_record(entry: Entry) -> bool:
    """Tell whether an entry of a store is a record as it is written here: somebody may have written into the store."""
    try:
        _RECORD.validate_python({**entry.record, "hash": entry.hash})
        datetime.fromisoformat(entry.record["time"]).astimezone()
    except (ValueError, OverflowError):  # no record, no time, or one that no calendar has
        return False
    return True


class AuditLog:
    """The records of one store."""

    def __init__(self, store: Store, redact: Redactor, settings: AuditSettings | None = None) -> None:
        """Prepare the tables, and remove what is over the bounds of the settings.

        Raises:
            StoreError: The store cannot be used.
        """
        store.prepare(TABLES)
        self._store = store
        self._redact = redact
        self._settings = settings or AuditSettings()
        self._appended = 0
        self._prune()

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
        # Pruned before: where that fails, nothing is written that is then taken for unwritten.
        if self._appended % _PRUNED_EVERY == _PRUNED_EVERY - 1:
            self._prune()
        number = append(self._store, fields)
        self._appended += 1
        return number

    def _prune(self) -> None:
        settings = self._settings
        if settings.days is not None or settings.records is not None:
            oldest = datetime.now(UTC) - timedelta(days=settings.days or 0)
            before = "" if settings.days is None else oldest.isoformat(timespec="milliseconds")
            prune(self._store, before=before, keep=settings.records, at_most=_PRUNED_AT_ONCE)


def audit_json_schema() -> dict[str, Any]:
    """Return the published JSON Schema of one line of the export."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One record of `codemode audit --json`, a line each",
        **_RECORD.json_schema(),
    }
