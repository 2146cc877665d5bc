"""What another policy would have decided about recorded calls, with what people had said before."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from broker import Denial, Grant, PolicyConfig
from broker.authorization.policy import Policy
from broker.recordings.replay.policy_replay import judge_recording

pytestmark = pytest.mark.anyio

ADD = "from tools import desk, ToolError\ntry:\n    await desk.add(a=1)\nexcept ToolError:\n    pass"


def policy(**section) -> Policy:
    return Policy(PolicyConfig.model_validate(section))


ALLOWING = policy(rules=[{"tools": "*", "effect": "allow"}])


class Refusing:
    async def answer(self, _question):
        return [Denial("desk.add", "not today")]


@pytest.mark.parametrize(
    ("session", "now", "basis"),
    [({"answerer": Refusing()}, "denied", "denial desk.add"), ({"grants": [Grant("desk.add")]}, "allowed", "rule 1")],
)
async def test_what_a_person_refused_before_the_run_is_refused_under_any_policy(opened, recorded, session, now, basis):
    async with opened() as broker:
        asked = broker.session(**session)
        for _ in range(2):  # the second run begins with what was said in the first
            await asked.execute_code(ADD, describe_references=True)
    [verdict] = judge_recording(recorded(), ALLOWING)
    assert (verdict.then, verdict.now, verdict.basis, verdict.is_same) == (now, now, basis, True)


@pytest.mark.parametrize(
    ("effect", "now", "is_same"), [("allow", "allowed", True), ("ask", "asked", True), ("deny", "denied", False)]
)
async def test_a_question_counts_as_any_answer_to_it_and_a_denial_does_not(run, recorded, effect, now, is_same):
    await run(ADD, policy=PolicyConfig.model_validate({"rules": [{"tools": "*", "effect": "allow"}]}), nothing=True)
    [verdict] = judge_recording(recorded(), policy(rules=[{"tools": "*", "effect": effect}]))
    assert (verdict.then, verdict.now, verdict.is_same) == ("allowed", now, is_same)
    assert judge_recording(recorded(), policy(rules=[]))[0].basis == "the default 'everything else'"


@pytest.mark.parametrize(("effect", "now"), [("allow", "allowed"), ("ask", "asked"), ("deny", "denied")])
async def test_a_call_that_was_not_sent_differs_from_no_decision(opened, run, recorded, effect, now):
    other = policy(rules=[{"tools": "*", "effect": effect}])
    await run(f"import json\n{ADD}".replace("a=1", "a=json.loads('null')"), nothing=True)
    [misfit] = judge_recording(recorded(), other)
    async with opened() as broker:
        waiting = await broker.session(parks=True).execute_code(ADD, describe_references=True)
    assert waiting.outcome == "parked"
    [open_call] = judge_recording(recorded(), other)
    for verdict in (misfit, open_call):
        assert (verdict.then, verdict.now, verdict.is_same) == ("not sent", now, True)


async def test_calls_count_in_the_quotas_of_the_other_policy(run, recorded):
    await run("from tools import desk\nfor n in range(3):\n    await desk.add(a=n)")
    limited = policy(rules=[{"tools": "*", "effect": "allow"}], quotas=[{"tools": "desk.*", "per_run": 2}])
    verdicts = judge_recording(recorded(), limited)
    assert [verdict.now for verdict in verdicts] == ["allowed", "allowed", "denied"]
    assert verdicts[2].basis == "the quota 1 (2 calls in a run) is used up"


async def test_a_call_that_the_other_policy_refuses_uses_nothing_up(run, recorded):
    await run("from tools import desk\nfor n in range(3):\n    await desk.add(a=n)")
    refusing = {"tools": "*", "arguments": {"/a": {"equals": 0}}, "effect": "deny"}
    limited = policy(rules=[refusing, {"tools": "*", "effect": "allow"}], quotas=[{"tools": "desk.*", "per_run": 1}])
    assert [verdict.now for verdict in judge_recording(recorded(), limited)] == ["denied", "allowed", "denied"]


@pytest.mark.parametrize(("seconds", "now"), [(59, "denied"), (61, "allowed")])
async def test_calls_count_in_the_minute_in_which_they_were_made(run, recorded, seconds, now):
    await run("from tools import desk\nfor n in range(2):\n    await desk.add(a=n)")
    recording = recorded()
    first, second = recording.calls.values()
    second.made = first.made + seconds * 1_000_000_000
    limited = policy(rules=[{"tools": "*", "effect": "allow"}], quotas=[{"tools": "desk.*", "per_minute": 1}])
    assert [verdict.now for verdict in judge_recording(recording, limited)] == ["allowed", now]


@pytest.mark.parametrize(("allowed", "now"), [("desk.*", "denied"), ("desk.add", "allowed")])
async def test_labels_come_from_answers_of_servers_and_not_from_refusals(run, recorded, allowed, now):
    await run(
        f"from tools import desk, ToolError\ntry: await desk.echo(text='x')\nexcept ToolError: pass\n{ADD}", allowed
    )
    recording = recorded()
    labels = {"echo": ("private",), "add": ("egress",)}
    said = tuple(tool.model_copy(update={"labels": labels[tool.tool]}) for tool in recording.begun.tools)
    recording.begun = recording.begun.model_copy(update={"tools": said})
    flows = [{"from": "private", "to": "egress", "effect": "deny"}]
    found = judge_recording(recording, policy(rules=[{"tools": "*", "effect": "allow"}], flows=flows))
    assert [(verdict.name, verdict.now) for verdict in found] == [("desk.echo", "allowed"), ("desk.add", now)]


@pytest.mark.parametrize(("is_trusted", "now"), [(True, "allowed"), (False, "asked")])
async def test_hints_of_a_server_count_where_it_was_trusted(run, recorded, is_trusted, now):
    await run(ADD, nothing=True)
    recording = recorded()
    [tool] = recording.begun.tools
    said = tool.model_copy(update={"read_only": True, "is_trusted": is_trusted})
    recording.begun = recording.begun.model_copy(update={"tools": (said,)})
    reading = policy(rules=[{"tools": "*", "annotations": {"read_only": True}, "effect": "allow"}])
    assert [verdict.now for verdict in judge_recording(recording, reading)] == [now]


@pytest.mark.parametrize(("seconds", "now"), [(1, "allowed"), (-1, "asked")])
async def test_a_grant_holds_that_had_not_expired_when_the_run_began(run, recorded, seconds, now):
    await run(ADD)
    recording = recorded()
    [grant] = recording.begun.grants
    ends = datetime.fromtimestamp(recording.begun.at / 1e9 + seconds, UTC).isoformat()
    recording.begun = recording.begun.model_copy(update={"grants": (grant.model_copy(update={"expires_at": ends}),)})
    assert [verdict.now for verdict in judge_recording(recording, policy(rules=[]))] == [now]
