"""`extract` on the path of tool calls: decided by the policy and by people, counted, audited and recorded."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import pytest
from mcp.server import MCPServer

from broker import Broker, Config, Denial, Grant, PolicyConfig
from broker.audit.chain import entries
from broker.authorization.model_calls import DIGEST
from broker.authorization.policy import Policy
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.keeping.transfer import load
from broker.recordings.replay.policy_replay import judge_recording
from broker.recordings.settings import RecordingSettings
from broker.store import Store

pytestmark = pytest.mark.anyio

READ = "from tools import vault\nsecret = await vault.read()\nawait extract(secret, int)"
SEND = "from tools import vault\nfound = await extract('36', int)\nawait vault.put(text=str(found))"
ALL = {"tools": "*", "effect": "allow"}
NOT_TO_THE_MODEL = {"name": "no model", "tools": "@model.*", "effect": "deny", "reason": "models read nothing here"}
PRIVATE = {
    "rules": [ALL],
    "labels": ["private"],
    "model_labels": ["model"],
    "flows": [{"from": "private", "to": "model", "effect": "deny"}],
}


@pytest.fixture
def vault():
    server = MCPServer("vault")

    @server.tool()
    def read() -> str:
        return "thirty-six"

    @server.tool()
    def put(text: str) -> str:
        return text

    return server


@pytest.fixture
def asked():
    """What the model was asked to read."""
    return []


@pytest.fixture
def path(tmp_path):
    return tmp_path / "broker.sqlite3"


@pytest.fixture
def opened(vault, asked, path):
    """Open a session whose scripts have a model, under a policy."""

    async def model(extraction):
        asked.append(extraction.value)
        return 36

    @asynccontextmanager
    async def open_session(policy=None, **session):
        config = Config(policy=PolicyConfig.model_validate(policy or {}))
        with anyio.fail_after(60), Store(path) as store:
            async with Broker(config, servers={"vault": vault}, store=store) as broker:
                yield broker.session(extractor=model, **session)

    return open_session


async def run(session, script):
    """Run a script; return how it ended, and its calls of the model as decided."""
    result = await session.execute_code(script, describe_references=True)
    made = [(call.decision, call.status) for call in result.calls if (call.server, call.tool) == ("@model", "extract")]
    return result, made


async def test_without_rules_the_model_that_was_given_may_be_asked(opened, asked):
    async with opened(grants=[Grant("vault.read")]) as session:
        result, made = await run(session, READ)
    assert (result.value, made, asked) == (36, [("allowed", "ok")], ["thirty-six"])


async def test_a_rule_that_denies_keeps_a_text_from_the_model(opened, asked):
    async with opened({"rules": [NOT_TO_THE_MODEL, ALL]}) as session:
        result, made = await run(session, READ)
    assert (made, asked) == ([("denied", "refused")], [])
    assert result.error is not None
    assert (result.error.type, result.error.message) == (
        "ToolRefusedError",
        "@model.extract was refused by rule 1 'no model' of the policy: models read nothing here.",
    )


async def test_a_policy_that_says_nothing_of_the_model_asks_and_a_grant_answers(opened, asked):
    only_reads = {"rules": [{"tools": "vault.*", "effect": "allow"}]}
    async with opened(only_reads) as session:
        refused, made = await run(session, READ)
    assert (made, asked) == ([("denied", "refused")], [])
    assert refused.error is not None
    assert "Allow it beforehand, as with --allow '@model.extract'." in refused.error.message
    async with opened(only_reads, grants=[Grant("@model.extract")]) as session:
        allowed, made = await run(session, READ)
    assert (allowed.value, made, asked) == (36, [("allowed", "ok")], ["thirty-six"])


@pytest.mark.parametrize("answer", [Denial("@model.*", "read it yourself"), Grant("@model.extract")])
async def test_a_person_is_asked_about_the_model_as_about_a_tool(opened, asked, answer):
    shown: list[tuple[str, str]] = []

    class Answerer:
        name = "Ada"

        async def answer(self, question):
            shown.extend((call.qualified_name, call.arguments["value"]) for call in question.calls)
            return [answer]

    async with opened({"rules": [{"tools": "vault.*", "effect": "allow"}]}, answerer=Answerer()) as session:
        result, _made = await run(session, READ)
    assert shown == [("@model.extract", "thirty-six")]
    if isinstance(answer, Grant):
        assert (result.value, asked) == (36, ["thirty-six"])
    else:
        assert asked == []
        assert result.error is not None
        assert result.error.message == "@model.extract was refused: read it yourself."


async def test_a_quota_counts_what_the_model_is_asked(opened, asked):
    quota = {"name": "models cost", "tools": "@model.*", "per_run": 2}
    script = "for text in 'abc': await extract(text, int)"
    async with opened({"rules": [ALL], "quotas": [quota]}) as session:
        result, made = await run(session, script)
    assert (made, asked) == ([("allowed", "ok")] * 2 + [("denied", "refused")], ["a", "b"])
    assert result.error is not None
    assert "the quota 'models cost' (2 calls in a run) is used up" in result.error.message


async def test_private_data_does_not_reach_a_model_that_a_flow_keeps_it_from(opened, asked):
    async with opened(PRIVATE) as session:
        result, made = await run(session, READ)
        control, _made = await run(session, "await extract('public', int)")
    assert (made, asked, control.value) == ([("denied", "refused")], ["public"], 36)
    assert result.error is not None
    assert "after private from vault.read (1 call), to model" in result.error.message


async def test_what_a_model_said_is_received_from_it(opened, asked):
    flows = [{"from": "model", "to": "private", "effect": "deny"}]
    async with opened(PRIVATE | {"flows": flows}) as session:
        result, _made = await run(session, SEND)
        control, _made = await run(session, "from tools import vault\nawait vault.put(text='37')")
    assert (asked, control.value) == (["36"], "37")
    assert result.error is not None
    assert "after model from @model.extract (1 call), to private" in result.error.message


async def test_each_question_to_a_model_is_audited_before_and_after(opened, path):
    async with opened({"rules": [ALL]}) as session:
        result, _made = await run(session, "await extract('thirty-six', int)")
    with Store(path) as store:
        found = [entry.record for entry in entries(store, run=result.run_id)]
    assert [one["kind"] for one in found] == ["attempt", "result"]
    assert (found[0]["server"], found[0]["tool"], found[1]["attempt"]) == ("@model", "extract", found[0]["number"])
    assert (found[0]["decision"], found[0]["digest"], found[1]["status"]) == ("allowed", DIGEST, "ok")
    assert "thirty-six" in found[0]["arguments"]


@pytest.mark.parametrize(("rules", "now"), [([ALL], "allowed"), ([NOT_TO_THE_MODEL, ALL], "denied")])
async def test_a_recorded_question_is_judged_by_another_policy(opened, path, rules, now):
    async with opened({"rules": [ALL]}) as session:
        await run(session, "await extract('thirty-six', int)")
    with Store(path) as store, Recordings(store, RecordingSettings()) as recordings:
        recording = load(recordings, recordings.find("last"))
    [verdict] = judge_recording(recording, Policy(PolicyConfig.model_validate({"rules": rules})))
    assert (verdict.name, verdict.then, verdict.now) == ("@model.extract", "allowed", now)
