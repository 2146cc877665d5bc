"""Permanent grants: kept for one definition of one tool of one server, and revoked from anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.authorization.calls import PendingCall
from broker.authorization.desk import ConsentDesk
from broker.authorization.grants import Grant
from broker.authorization.kept_grants import KeptGrants, server_identity
from broker.authorization.predicates import Predicate
from broker.errors import StoreError
from broker.store import Store
from broker.upstreams.server_config import ServerConfig
from codegen import ToolAnnotations, ToolSpec

pytestmark = pytest.mark.anyio

IDENTITY = server_identity(ServerConfig(command="files"))


def spec(description="Writes."):
    return ToolSpec("files", "wr*te", None, description, {"type": "object"}, None, ToolAnnotations())


def call(of=None, **arguments):
    of = of or spec()
    return PendingCall("files", "wr*te", of.digest, arguments)


class Person:
    """Always allows calls like those of the question."""

    name = "person"

    def __init__(self):
        self.questions = []

    async def answer(self, question):
        self.questions.append(question)
        [group] = question.groups
        return [group.grant(group.suggestion(), scope="always")]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "broker.sqlite3") as one:
        yield one


def desk(store, answerer=None, *, identity=IDENTITY, principal="", of=None):
    kept = KeptGrants(store, {"files": identity})
    session = ConsentDesk((), answerer, kept=kept, principal=principal)
    session.see(of or spec())
    return session


async def decide(session, pending):
    decision = await session.for_run("run_1").decide(pending)
    return type(decision).__name__, decision.basis.by


async def test_what_was_allowed_permanently_holds_in_later_sessions(store):
    person = Person()
    assert await decide(desk(store, person), call(path="a")) == ("Allow", "person")
    later = desk(store)
    assert await decide(later, call(path="a")) == ("Allow", "person")
    assert (await decide(later, call(path="b")))[0] == "Deny"
    [kept] = KeptGrants(store).every()
    assert kept.grant == Grant(
        "files.wr[*]te",
        spec().digest,
        Predicate.parse({"": {"keys": ["path"]}, "/path": {"equals": "a"}}),
        scope="always",
    )
    assert (kept.definition, kept.by) == (spec(), "person")


async def test_revoked_by_its_session_it_holds_in_no_later_one(store):
    session = desk(store, Person())
    await decide(session, call(path="a"))
    [held] = session.book.held
    assert session.revoke(held.id) is held
    assert KeptGrants(store).every() == []
    assert (await decide(desk(store), call(path="a")))[0] == "Deny"


async def test_revoked_while_a_run_cannot_be_told_it_holds_in_no_later_session(store):
    class RunOnAFullDisk:
        @property
        def journal(self):
            return self

        def revoked(self, _grant_id):
            raise StoreError("the disk is full")

    session = desk(store, Person())
    await decide(session, call(path="a"))
    [held] = session.book.held
    session.open_runs.add(RunOnAFullDisk())
    with pytest.raises(StoreError):
        session.revoke(held.id)
    assert ([*session.book.held], KeptGrants(store).every()) == ([], [])


async def test_it_does_not_hold_for_another_definition_and_the_difference_is_shown(store):
    await decide(desk(store, Person()), call(path="a"))
    changed = spec("Deletes.")
    person = Person()
    assert await decide(desk(store, person, of=changed), call(changed, path="a")) == ("Allow", "person")
    assert person.questions[0].notes[0].change == (
        '- "description": "Writes.",',
        '+ "description": "Deletes.",',
    )


@pytest.mark.parametrize("other", [{"identity": "another"}, {"principal": "bob"}])
async def test_it_does_not_hold_for_another_server_or_principal(store, other):
    await decide(desk(store, Person()), call(path="a"))
    assert (await decide(desk(store, **other), call(path="a")))[0] == "Deny"
    assert (await decide(desk(store), call(path="a")))[0] == "Allow"


async def test_revoked_by_another_process_the_next_call_is_refused(store, tmp_path):
    session = desk(store, Person())
    await decide(session, call(path="a"))
    session.answerer = None
    assert (await decide(session, call(path="a")))[0] == "Allow"
    with Store(tmp_path / "broker.sqlite3") as elsewhere:
        [kept] = KeptGrants(elsewhere).every()
        assert KeptGrants(elsewhere).revoke(kept.id)
        assert not KeptGrants(elsewhere).revoke(kept.id)
    assert (await decide(session, call(path="a")))[0] == "Deny"
    assert (await decide(desk(store), call(path="a")))[0] == "Deny"


@pytest.mark.parametrize("calls", [None, 3])
async def test_revoked_by_another_process_a_call_that_waits_for_its_turn_is_not_made(store, tmp_path, calls):
    grant = Grant("files.wr[*]te", spec().digest, calls=calls, scope="always")
    kept_id = KeptGrants(store, {"files": IDENTITY}).keep(grant, spec(), principal="", by="person")
    run = desk(store).for_run("run_1")
    allowed = await run.decide(call(path="a"))
    assert run.still_allows(call(path="a"), allowed)
    with Store(tmp_path / "broker.sqlite3") as elsewhere:
        KeptGrants(elsewhere).revoke(kept_id)
    assert not run.still_allows(call(path="a"), allowed)


async def test_the_last_call_of_a_count_may_wait_for_its_turn(store):
    grant = Grant("files.wr[*]te", spec().digest, calls=1, scope="always")
    KeptGrants(store, {"files": IDENTITY}).keep(grant, spec(), principal="", by="person")
    run = desk(store).for_run("run_1")
    assert run.still_allows(call(path="a"), await run.decide(call(path="a")))


async def test_without_a_store_it_holds_for_the_session():
    session = ConsentDesk((), Person())
    session.see(spec())
    assert await decide(session, call(path="a")) == ("Allow", "person")
    session.answerer = None
    assert await decide(session, call(path="a")) == ("Allow", "person")


async def test_a_count_is_kept_across_sessions(store):
    KeptGrants(store, {"files": IDENTITY}).keep(
        Grant("files.wr[*]te", spec().digest, calls=2, scope="always"), spec(), principal="", by="person"
    )
    for expected in ("Allow", "Allow", "Deny"):
        assert (await decide(desk(store), call(path="a")))[0] == expected
    assert KeptGrants(store).every() == []


async def test_the_last_call_of_a_count_is_used_by_one_of_two_processes(store):
    kept = KeptGrants(store, {"files": IDENTITY})
    grant_id = kept.keep(
        Grant("files.wr[*]te", spec().digest, calls=2, scope="always"), spec(), principal="", by="person"
    )
    with Store(store.path) as elsewhere:
        other = KeptGrants(elsewhere, {"files": IDENTITY})
        assert [kept.use(grant_id), other.use(grant_id), kept.use(grant_id), other.use(grant_id)] == [
            True,
            True,
            False,
            False,
        ]


async def test_a_grant_for_a_definition_that_has_changed_since_is_not_kept(store):
    session = desk(store)
    session.see(spec("Deletes."))
    session.give(Grant("files.wr[*]te", spec().digest, scope="always"), run="run_1", by="person")
    assert KeptGrants(store).every() == []
    assert (await decide(session, call(path="a")))[0] == "Allow"
    assert (await decide(session, call(spec("Deletes."), path="a")))[0] == "Deny"


def test_a_server_that_is_configured_otherwise_is_another_one():
    configs = [
        ServerConfig(command="files"),
        ServerConfig(command="other"),
        ServerConfig(command="files", args=("--all",)),
        ServerConfig(command="files", cwd=Path("/srv")),
        ServerConfig(url="https://files.example/mcp"),
    ]
    assert len({server_identity(config) for config in configs}) == len(configs)


EDITED = {
    "pattern": "files.*",
    "definition": "[]",
    "arguments": "[" * 5_000,
    "calls": -5,
    "expires_at": "2020-01-01T00:00:00",
    "after": "null",
    "given_at": "\x1b[31m",
}


@pytest.mark.parametrize("column", EDITED)
async def test_one_that_was_edited_into_none_allows_nothing_and_is_named(store, column):
    await decide(desk(store, Person()), call(path="a"))
    [kept] = KeptGrants(store).every()
    store.execute(f"UPDATE kept_grant SET {column} = ?", (EDITED[column],))  # noqa: S608  # a column of ours
    said = f"the permanent grant '{kept.id}' in the store is damaged; `codemode grants revoke {kept.id}` removes it."
    with pytest.raises(StoreError) as caught:
        desk(store)
    assert str(caught.value) == said
    assert KeptGrants(store).revoke(kept.id)
    assert (await decide(desk(store), call(path="a")))[0] == "Deny"
