"""What is said of calls before they are made: never more than is decided when they are."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import Broker, Grant, PolicyConfig
from broker.authorization.calls import Caller, PendingCall, ToolFacts
from broker.authorization.decision import Allow, Deny, authorize
from broker.authorization.flow import FlowState
from broker.authorization.grants import Denial, GrantBook
from broker.authorization.outlook import outlook
from broker.authorization.policy import Policy
from broker.authorization.policy_config import Hints, Rule
from broker.authorization.predicates import Predicate

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CALL = PendingCall("git", "git_log", "sha256:1", {}, caller=Caller("session", "ada"))
IS_ONE = {"/x": {"equals": 1}}
X_IS_ONE = Predicate.parse(IS_ONE)
DESTROYS = Hints(destructive=True)
SCRIPTS = ("sha256:" + "a" * 64, "sha256:" + "b" * 64)


def said(rules=(), grants=(), denials=(), *, can_ask=True, call=CALL):
    book = GrantBook.of(grants, denials)
    policy = Policy(PolicyConfig(rules=tuple(rules)))
    return outlook(call, policy=policy, grants=book, can_ask=can_ask, now=NOW.timestamp())


def rule(effect, **settings) -> Rule:
    return Rule(tools=("git.*",), effect=effect, **settings)


OUTLOOKS = {
    "nobody has said anything": ((), (), (), "asked"),
    "granted": ((), [Grant("git.*")], (), None),
    "another is granted": ((), [Grant("hub.*")], (), "asked"),
    "granted for some arguments": ((), [Grant("git.*", arguments=X_IS_ONE)], (), None),
    "granted once, and that is over": ((), [Grant("git.*", expires_at=NOW - timedelta(1))], (), "asked"),
    "granted in one run": ((), [Grant("git.*", scope="run")], (), "asked"),
    "granted for another definition": ((), [Grant("git.*", digest="sha256:2")], (), "asked"),
    "denied by a rule": ([rule("deny")], [Grant("git.*")], (), "refused"),
    "denied for some arguments": ([rule("deny", arguments=IS_ONE)], [Grant("git.*")], (), None),
    "allowed for some arguments": ([rule("allow", arguments=IS_ONE), rule("deny")], (), (), None),
    "allowed for a script": ([rule("allow", scripts=SCRIPTS[:1]), rule("deny")], (), (), None),
    "denied in any case": ([rule("deny", arguments=IS_ONE), rule("deny")], (), (), "refused"),
    "denied to others": ([rule("deny", principals=("bob",)), rule("allow")], (), (), None),
    "denied for a hint that nobody gives": ([rule("deny", annotations=DESTROYS), rule("allow")], (), (), "refused"),
    "asked for a hint that nobody gives": ([rule("ask", annotations=DESTROYS), rule("allow")], (), (), "asked"),
    "asked for a hint before all are denied": ([rule("ask", annotations=DESTROYS), rule("deny")], (), (), "refused"),
    "allowed for a hint that nobody gives": ([rule("allow", annotations=DESTROYS), rule("deny")], (), (), "refused"),
    "denied by a person": ([rule("allow")], (), [Denial("git.git_log")], "refused"),
    "denied by a person for some arguments": (
        [rule("allow")],
        (),
        [Denial("git.*", arguments=X_IS_ONE)],
        None,
    ),
}


@pytest.mark.parametrize(("rules", "grants", "denials", "expected"), OUTLOOKS.values(), ids=OUTLOOKS.keys())
def test_it_is_said_what_is_certain_whatever_the_arguments(rules, grants, denials, expected):
    assert said(rules, grants, denials) == expected
    unasked = "refused" if expected == "asked" else expected
    assert said(rules, grants, denials, can_ask=False) == unasked


_RULES = st.builds(
    lambda pattern, effect, arguments, scripts, annotations: Rule(
        tools=(pattern,), effect=effect, arguments=arguments, scripts=scripts, annotations=annotations
    ),
    st.sampled_from(["git.*", "git.git_log", "hub.*"]),
    st.sampled_from(["allow", "ask", "deny"]),
    st.sampled_from([{}, IS_ONE]),
    st.sampled_from([None, SCRIPTS[:1]]),
    st.sampled_from([None, DESTROYS, Hints(destructive=False, read_only=True)]),
)
_FACTS = st.sampled_from([ToolFacts(), ToolFacts(destructive=True), ToolFacts(destructive=False, read_only=True)])
_GRANTS = st.builds(
    Grant,
    st.sampled_from(["git.*", "hub.*"]),
    arguments=st.sampled_from([None, X_IS_ONE]),
    digest=st.sampled_from([None, "sha256:1", "sha256:2"]),
    expires_at=st.sampled_from([None, NOW - timedelta(1)]),
)


@given(st.lists(_RULES, max_size=4), st.lists(_GRANTS, max_size=3), _FACTS, st.booleans())
def test_no_call_is_decided_otherwise_than_was_said(rules, grants, facts, can_ask):
    expected = said(rules, grants, can_ask=can_ask, call=replace(CALL, facts=facts))
    for x, script in product((1, 2), SCRIPTS):
        call = replace(CALL, facts=facts, arguments={"x": x}, caller=replace(CALL.caller, script=script))
        decision = authorize(
            call,
            policy=Policy(PolicyConfig(rules=tuple(rules))),
            grants=GrantBook.of(grants),
            flow=FlowState(),
            now=NOW.timestamp(),
        )
        assert not (expected is not None and isinstance(decision, Allow))
        assert not (expected == "refused" and can_ask and not isinstance(decision, Deny))


def add(a: int) -> int:
    """Adds."""
    return a + 1


def wipe() -> str:
    """Wipes."""
    return "gone"


@pytest.mark.anyio
async def test_a_description_says_that_calls_are_refused_and_they_are():
    script = "from tools import desk\nfor call in (desk.add, desk.wipe):\n    try:\n        print(await call())\n"
    script = script.replace("call()", "(call(a=1) if call is desk.add else call())")
    script += "    except ToolError as error:\n        print(type(error).__name__)"
    async with Broker(servers={"desk": [add, wipe]}) as broker:
        session = broker.session(grants=[Grant("desk.add")])
        lacking = await session.dispatch("execute_code", {"code": script})
        fetched = await session.dispatch("get_tool_details", {"tools": ["desk.add"]})
        ran = await session.dispatch("execute_code", {"code": script})
    said = "# Calls here are refused: desk.wipe. Do without, or ask the user to allow them."
    assert lacking.text.endswith(said)
    assert "# Calls here" not in fetched.text
    assert ran.text.startswith("2\nToolRefusedError\n")


@pytest.mark.anyio
async def test_a_description_says_that_a_person_is_asked():
    class Nobody:
        async def answer(self, _question):
            return []

    async with Broker(servers={"desk": [add, wipe]}) as broker:
        session = broker.session(grants=[Grant("desk.add")], answerer=Nobody())
        fetched = await session.dispatch("get_tool_details", {"tools": ["desk.*"]})
    assert fetched.text.endswith("# A person is asked before each call: desk.wipe.")
