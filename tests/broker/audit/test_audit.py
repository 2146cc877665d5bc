"""One record for each attempt, written before it is sent; the chain shows what was changed."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp.server import MCPServer

from benchmarks.authorization import kills
from broker import Broker, Config, Grant
from broker.audit.chain import FIRST, entries, prune, verify
from broker.audit.log import AuditLog, audit_json_schema, is_record
from broker.audit.settings import AuditSettings
from broker.authorization.calls import PendingCall
from broker.errors import RunInterruptedError, StoreError
from broker.redaction import Redactor
from broker.store import Store

SCHEMA_FILE = Path(__file__).parents[3] / "docs" / "audit.schema.json"
SECRET = "k3y-of-the-desk"  # noqa: S105  # what must not be seen
CONFIG = '{"mcpServers": {}, "policy": {"rules": [{"tools": "desk.drop", "effect": "deny", "reason": "${REASON}"}]}}'

SCRIPT = """
import asyncio
from tools import desk
await asyncio.gather(*(desk.note(text=f"note {n}") for n in range(20)))
for call in (desk.drop(), desk.note(text=5), desk.ask(), desk.fail()):
    try:
        await call
    except Exception:
        pass
await desk.note(text="the last k3y-of-the-desk")
"""


@pytest.fixture
def reached():
    """What reached the server, in its own words."""
    return []


@pytest.fixture
def desk(reached):
    server = MCPServer("desk")

    @server.tool()
    def note(text: str) -> str:
        reached.append(("note", {"text": text}))
        return text

    @server.tool()
    def drop() -> str:
        reached.append(("drop", {}))
        return ""

    @server.tool()
    def ask() -> str:
        reached.append(("ask", {}))
        return ""

    @server.tool()
    def fail() -> str:
        reached.append(("fail", {}))
        raise ValueError("failed")

    return server


@pytest.fixture
def path(tmp_path):
    return tmp_path / "broker.sqlite3"


async def run(store, desk, *allowed):
    config = Config.parse(CONFIG, source="c", folder=Path(), environment={"REASON": SECRET})
    with anyio.fail_after(60):
        async with Broker(config, servers={"desk": desk}, store=store) as broker:
            session = broker.session(grants=map(Grant, allowed), principal="anna", name="s1")
            return await session.execute_code(SCRIPT, describe_references=True, check="off")


pytestmark = pytest.mark.anyio


async def test_the_audit_and_the_servers_own_log_match_one_to_one(path, desk, reached):
    with Store(path) as store:
        result = await run(store, desk, "desk.note", "desk.fail", "desk.drop")
        records = [entry.record for entry in entries(store)]
    assert result.outcome == "completed"
    attempts = [record for record in records if record["kind"] == "attempt"]
    sent = [(one["tool"], json.loads(one["arguments"])) for one in attempts if one["decision"] == "allowed"]
    told = [(tool, json.loads(json.dumps(given).replace(SECRET, "[redacted]"))) for tool, given in reached]
    assert sorted(map(repr, sent)) == sorted(map(repr, told))
    assert len(sent) == 22
    results = [record["attempt"] for record in records if record["kind"] == "result"]
    assert sorted(results) == [one["number"] for one in attempts if one["decision"] == "allowed"]
    assert [(one["tool"], one["decision"], one["status"]) for one in attempts if one["decision"] != "allowed"] == [
        ("drop", "denied", "refused"),
        ("note", "undecided", "bad_arguments"),
        ("ask", "denied", "refused"),
    ]
    assert {(one["principal"], one["session"], one["run"]) for one in attempts} == {("anna", "s1", result.run_id)}
    assert next(one["basis"] for one in attempts if one["tool"] == "drop") == {
        "kind": "rule",
        "name": "rule 1",
        "reason": "[redacted]",
    }


async def test_what_is_recorded_holds_no_secret_and_fits_the_published_schema(path, desk):
    with Store(path) as store:
        await run(store, desk, "desk.*")
        lines = [{**entry.record, "hash": entry.hash} for entry in entries(store)]
    assert lines
    for line in lines:
        jsonschema.validate(line, audit_json_schema())
        assert SECRET not in json.dumps(line)


def test_the_published_schema_is_current():
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == audit_json_schema(), (
        "write audit_json_schema() to docs/audit.schema.json again"
    )


async def test_an_untouched_chain_is_whole(path, desk):
    with Store(path) as store:
        assert verify(store).last_hash == FIRST
        await run(store, desk, "desk.*")
        found = verify(store)
        assert (found.fault, found.count) == ("", len(list(entries(store))))
        assert found.last_hash == list(entries(store))[-1].hash


TAMPERED = {
    "a record changed": ("UPDATE audit SET record = replace(record, 'note', 'nota') WHERE number = 5", 5),
    "a record changed with its hash": (
        "UPDATE audit SET record = replace(record, 'note', 'nota'), hash = '{hash}' WHERE number = 5",
        6,
    ),
    "a record hidden from its run": ("UPDATE audit SET run = 'other' WHERE number = 9", 9),
    "a record removed": ("DELETE FROM audit WHERE number = 7", 7),
    "the first removed": ("DELETE FROM audit WHERE number = 1", 1),
    "a record that is not ASCII": (
        "UPDATE audit SET record = replace(record, 'note', 'n\u00f6te') WHERE number = 5",
        5,
    ),
    "a record that nests": ("UPDATE audit SET record = replace(hex(zeroblob(100000)), '0', '[') WHERE number = 5", 5),
    "a record that is none": ("UPDATE audit SET record = '' WHERE number = 5", 5),
}


@pytest.mark.parametrize("case", TAMPERED)
async def test_a_change_of_the_records_shows(path, desk, case):
    statement, number = TAMPERED[case]
    with Store(path) as store:
        await run(store, desk, "desk.note")
    with sqlite3.connect(path) as raw:
        with pytest.raises(sqlite3.IntegrityError, match="append only"):
            raw.execute(statement)
        raw.execute("DROP TRIGGER audit_no_update")
        raw.execute("DROP TRIGGER audit_no_delete")
        [text] = raw.execute("SELECT replace(record, 'note', 'nota') FROM audit WHERE number = 5").fetchone()
        changed = raw.execute(statement.format(hash=hashlib.sha256(text.encode()).hexdigest())).rowcount
    raw.close()
    assert changed == 1
    with Store(path) as store:
        assert f"record {number} " in verify(store).fault


CHANGED: list[dict[str, Any]] = [
    {"time": "0001-01-01T00:00:00+23:00"},
    {"time": "soon"},
    {"status": None},
    {"arguments": {}},
    {"basis": 7},
    {"kind": "result", "attempt": [1]},
    {"decision": "\x1b[2J"},
]


async def test_what_somebody_made_of_a_record_is_none(path, desk):
    with Store(path) as store:
        await run(store, desk, "desk.note")
        whole = list(entries(store))
    assert all(map(is_record, whole))
    for changed in CHANGED:
        assert not is_record(replace(whole[0], record=whole[0].record | changed)), changed


@pytest.mark.parametrize("number", [0, -(2**63)])
async def test_a_record_inserted_before_the_first_shows(path, desk, number):
    with Store(path) as store:
        await run(store, desk, "desk.note")
        assert verify(store).fault == ""
        store.execute(
            "INSERT INTO audit SELECT ?, run, server, time, record, hash FROM audit WHERE number = 1", (number,)
        )
        assert verify(store).fault.endswith("is missing, or was changed")


async def test_behind_a_record_of_the_last_number_nothing_is_recorded_and_so_nothing_sent(path, desk, reached):
    with Store(path) as store:
        await run(store, desk, "desk.note")
        reached.clear()
        store.execute("INSERT INTO audit SELECT ?, run, server, time, record, hash FROM audit LIMIT 1", (2**63 - 1,))
        with pytest.raises(RunInterruptedError, match=r"the audit has a record of the last number; .* is made"):
            await run(store, desk, "desk.note")
        with pytest.raises(StoreError, match="of the last number"):
            prune(store, keep=1)
        assert verify(store).fault.endswith("is missing, or was changed")
    assert reached == []


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (1, "record 1 is missing, and none says that it was pruned"),
        (2, "records 1 to 2 are missing, and none says that they were pruned"),
    ],
)
async def test_records_that_are_missing_at_the_beginning_are_counted(path, desk, last, said):
    with Store(path) as store:
        await run(store, desk, "desk.note")
    with sqlite3.connect(path) as raw:
        raw.execute("DROP TRIGGER audit_no_delete")
        raw.execute("DELETE FROM audit WHERE number <= ?", (last,))
    raw.close()
    with Store(path) as store:
        assert verify(store).fault == said


async def test_records_are_pruned_also_where_the_last_to_go_is_missing(path, desk):
    with Store(path) as store:
        await run(store, desk, "desk.note")
        last = verify(store).count
        with store.transaction():
            store.execute("INSERT INTO audit_pruned VALUES (?)", (last,))
            store.execute("DELETE FROM audit WHERE number = ?", (last - 5,))
            store.execute("DELETE FROM audit_pruned")
        prune(store, keep=5)
        assert [entry.record["number"] for entry in entries(store)] == [*range(last - 4, last + 2)]
        assert verify(store).fault == f"records 1 to {last - 5} are missing, and none says that they were pruned"


async def test_what_was_pruned_is_said_and_the_rest_is_still_whole(path, desk):
    with Store(path) as store:
        await run(store, desk, "desk.*")
        before = verify(store)
        assert prune(store, keep=10) == before.count - 10
        assert prune(store, before="2000-01-01") == 0
        found = verify(store)
        assert (found.fault, found.count, found.pruned) == ("", 11, before.count - 10)
        assert found.pruned_at
        await run(store, desk, "desk.*")
        assert prune(store, before="2999-01-01", at_most=30) == 30
        found = verify(store)
        assert (found.fault, found.pruned) == ("", before.count + 20)
        assert prune(store, before="2999-01-01") > 0
        # The last one stays, and the word about what went before it.
        assert verify(store).count == 2
        lines = [{**entry.record, "hash": entry.hash} for entry in entries(store)]
    for line in lines:
        jsonschema.validate(line, audit_json_schema())


def test_what_is_pruned_while_it_is_verified_is_no_fault(path, monkeypatch):
    with Store(path) as store, Store(path) as other:
        log = AuditLog(store, Redactor(()))
        for _ in range(20):
            log.attempt(PendingCall("desk", "note", "", {}), decision="denied", basis=None)
        execute = store.execute
        before: list[int] = []

        def execute_after_pruning(statement, parameters=()):
            if "ORDER BY number LIMIT" in statement and len(before) < 2:
                before.append(prune(other, keep=10 - len(before)))
            return execute(statement, parameters)

        monkeypatch.setattr(store, "execute", execute_after_pruning)
        found = verify(store)
    assert all(before)
    assert (found.fault, found.pruned) == ("", sum(before))


AFTER_PRUNING = {
    "one more removed": ("DELETE FROM audit WHERE number <= {first}", " are missing, and none says"),
    "the word about it removed": ("DELETE FROM audit WHERE number = {last}", " are missing, and none says"),
    "the word about it changed": (
        "UPDATE audit SET record = replace(record, '\"through\":', '\"through\":1') WHERE number = {last}",
        "was changed",
    ),
    "the first one kept changed": (
        'UPDATE audit SET record = replace(record, \'"previous":"\', \'"previous":"f\') WHERE number = {first}',
        "was changed",
    ),
}


@pytest.mark.parametrize("case", AFTER_PRUNING)
async def test_a_change_after_pruning_shows(path, desk, case):
    statement, said = AFTER_PRUNING[case]
    with Store(path) as store:
        await run(store, desk, "desk.note")
        prune(store, keep=10)
        numbers = [entry.columns[0] for entry in entries(store)]
    with sqlite3.connect(path) as raw:
        statement = statement.format(first=numbers[0], last=numbers[-1])
        with pytest.raises(sqlite3.IntegrityError, match="append only"):
            raw.execute(statement)
        raw.execute("DROP TRIGGER audit_no_update")
        raw.execute("DROP TRIGGER audit_no_delete")
        assert raw.execute(statement).rowcount == 1
    raw.close()
    with Store(path) as store:
        assert said in verify(store).fault


async def test_a_log_with_bounds_keeps_to_them(path, desk):
    with Store(path) as store:
        await run(store, desk, "desk.*")
        assert verify(store).pruned == 0
        AuditLog(store, Redactor(()), AuditSettings(days=1, records=1_000))
        assert verify(store).pruned == 0
        AuditLog(store, Redactor(()), AuditSettings(days=1e-9))
        assert (verify(store).count, verify(store).fault) == (2, "")
        log = AuditLog(store, Redactor(()), AuditSettings(records=1_000))
        for _ in range(2_000):
            log.attempt(PendingCall("desk", "note", "", {}), decision="denied", basis=None)
        found = verify(store)
        assert (found.fault, found.count <= 1_500) == ("", True)


async def test_what_cannot_be_written_down_is_not_sent(path, desk, reached):
    with Store(path) as store:
        with anyio.fail_after(60):
            async with Broker(servers={"desk": desk}) as broker:
                broker._audit = AuditLog(store, Redactor(()))
                session = broker.session(grants=[Grant("*")])
                [[pages]] = store.execute("PRAGMA page_count")
                store.execute(f"PRAGMA max_page_count = {pages}")
                text = "x" * 5_000
                result = await session.execute_code(
                    f"from tools import desk\nfor n in range(9): await desk.note(text='{text}')",
                    describe_references=True,
                )
        sent = [entry for entry in entries(store) if entry.record.get("decision") == "allowed"]
    assert result.error is not None
    assert result.error.type == "ToolRefusedError"
    assert result.error.message == (
        "desk.note was not called: the audit cannot be written, and unaudited calls are not made. Nothing was sent. "
        "The broker's operator has to repair the store (`codemode doctor` says how); then call it again."
    )
    assert len(reached) == len(sent) < 9


@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be moved there")
@pytest.mark.parametrize("is_replaced", [False, True])
async def test_once_the_store_was_moved_away_nothing_is_sent(path, reached, is_replaced):
    server = MCPServer("desk")

    @server.tool()
    def note(text: str) -> str:
        reached.append(text)
        path.rename(path.with_name("moved"))
        if is_replaced:
            Store(path).close()
        return text

    script = "from tools import desk\nfor n in range(3): await desk.note(text=f'{n}')"
    with Store(path) as store, anyio.fail_after(60):
        async with Broker(servers={"desk": server}, store=store) as broker:
            session = broker.session(grants=[Grant("*")])
            with pytest.raises(RunInterruptedError, match="it was moved or removed while in use"):
                await session.execute_code(script, describe_references=True)
            with pytest.raises(StoreError, match="it was moved or removed while in use; restart the program"):
                await session.execute_code("1")
    assert reached == ["0"]


async def test_a_call_whose_journal_fails_is_on_record_as_not_sent(path, desk, reached, monkeypatch):
    def fail(*_, **__):
        raise StoreError("no space is left.")

    monkeypatch.setattr("broker.recordings.journal.run_journal.RunJournal.sent", fail)
    with Store(path) as store:
        with pytest.raises(RunInterruptedError, match=r"no space is left\. No call was sent\."):
            await run(store, desk, "desk.*")
        records = [entry.record for entry in entries(store)]
    assert reached == []
    assert {(record["kind"], record.get("decision")) for record in records} == {("attempt", "undecided")}


async def test_records_are_found_by_run_server_and_time(path, desk):
    with Store(path) as store:
        first = await run(store, desk, "desk.*")
        second = await run(store, desk, "desk.*")
        everything = list(entries(store))
        assert len(list(entries(store, run=first.run_id))) == len(list(entries(store, run=second.run_id)))
        assert {entry.record["run"] for entry in entries(store, run=second.run_id)} == {second.run_id}
        assert list(entries(store, server="desk")) == everything
        assert list(entries(store, server="other")) == []
        assert list(entries(store, since="2999-01-01")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX's")
def test_after_kill_9_the_servers_own_log_and_the_audit_match_one_to_one(tmp_path):
    """A short one of `python -m benchmarks.authorization kills`."""
    found = kills.run(tmp_path, calls=200, kills=3)
    assert found.faults == ()
    assert found.executed >= 200
    assert found.executed + found.not_made == found.allowed
    assert found.not_made <= found.unknown <= 3 * kills.AT_ONCE


def test_what_does_not_match_is_found(tmp_path):
    kills.run(tmp_path, calls=20, kills=1)
    ledger, store = tmp_path / "ledger", tmp_path / "broker.sqlite3"
    first, *rest = ledger.read_text().splitlines()
    for lines, fault in (
        ([first, first, *rest], f"{first} was made 2 times"),
        ([first, *rest, "write unheard-of"], "write unheard-of was made and is not on record"),
        (rest, f"{first} has a result and was not made"),
    ):
        ledger.write_text("\n".join(lines))
        assert kills.compare(store, ledger, 1).faults == (fault,)
