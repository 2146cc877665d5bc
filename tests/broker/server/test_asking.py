"""Questions by elicitation, with the SDK's client in both eras."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import mcp.types as t
import pytest
from mcp import Client, MCPError

from broker import Broker, Config, PolicyConfig
from broker.authorization.calls import PendingCall
from broker.authorization.policy import Policy
from broker.authorization.questions import Question, Verdict
from broker.server import BrokerServer, ServeSettings
from broker.server.eliciting import _answers, form_of

pytestmark = pytest.mark.anyio

LOOP = """
import asyncio
from tools import desk
print(await asyncio.gather(*(desk.add(a=n, b=0) for n in range(3))))
try:
    await desk.add(a=3, b=1)
except PermissionError as error:
    print(error)
"""


class Person:
    """Answers the forms that a client shows with prepared content."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.forms: list[t.ElicitRequestFormParams] = []

    async def __call__(self, _ctx, params):
        self.forms.append(params)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def accept(**content) -> t.ElicitResult:
    return t.ElicitResult(action="accept", content=content)


@pytest.fixture
def asked(desk_server, mode):
    """A client of the era `mode` behind which a person sits, and the broker, in which nothing is allowed."""

    @asynccontextmanager
    async def connect(person, name="test", **policy):
        with anyio.fail_after(60):
            async with Broker(servers={"desk": desk_server}) as broker:
                broker._policy = Policy(PolicyConfig(**policy))
                server = BrokerServer(broker, ServeSettings())
                info = t.Implementation(name=name, version="1")
                async with Client(server.mcp, mode=mode, client_info=info, elicitation_callback=person) as client:
                    yield client

    return connect


async def run(client, session, code):
    result = await client.call_tool("execute_code", {"code": code, **session})
    return result.structured_content


@pytest.fixture
def session_of():
    """Begins a session and returns how to name it: the newer era has no other way in memory."""

    async def begin(client):
        result = await client.call_tool("execute_code", {"code": "1"})
        handle = result.structured_content.get("session")
        return {"session": handle} if handle else {}

    return begin


async def describe(client, session):
    await client.call_tool("get_tool_details", {"tools": ["desk.add", "desk.fail"], **session})


async def test_one_form_answers_the_waiting_calls_and_a_note_reaches_the_script(asked, session_of, calls):
    person = Person(
        accept(tool_1="allow calls like these in this run"), accept(tool_1="refuse", words="only with b of 0")
    )
    async with asked(person) as client:
        session = await session_of(client)
        await describe(client, session)
        result = await run(client, session, LOOP)
    assert result["stdout"] == "[0, 1, 2]\ndesk.add was refused: only with b of 0.\n"
    assert sorted(calls) == [("add", n, 0) for n in range(3)]
    first, second = person.forms
    assert first.message.startswith(
        "A script wants to call tools:\n1. desk.add: 3 calls\n   b=0\n   a=0 … 2 (3 values)"
    )
    assert first.requested_schema["properties"]["tool_1"]["title"] == "desk.add"
    assert first.requested_schema["properties"]["tool_1"]["enum"][0] == "refuse"
    assert "b=1" in second.message


NO = {
    "declined": t.ElicitResult(action="decline"),
    "cancelled": t.ElicitResult(action="cancel"),
    "refused": accept(tool_1="refuse"),
    "a choice that is none": accept(tool_1="allow everything for ever"),
    "nothing": accept(),
    "declined, with a yes inside": t.ElicitResult(action="decline", content={"tool_1": "allow these calls"}),
}


@pytest.mark.parametrize("case", NO)
async def test_anything_but_a_yes_is_a_refusal(asked, session_of, calls, case):
    async with asked(Person(NO[case])) as client:
        session = await session_of(client)
        await describe(client, session)
        result = await run(client, session, "from tools import desk\nawait desk.add(a=1)")
    assert (result["error"]["type"], result["error"]["message"]) == ("ToolRefusedError", "desk.add was refused.")
    assert calls == []


async def test_a_yes_to_these_calls_is_asked_again_for_the_next(asked, session_of, calls):
    person = Person(accept(tool_1="allow these calls"), accept(tool_1="allow these calls"))
    script = "from tools import desk\nfor n in range(2): await desk.add(a=n)"
    async with asked(person) as client:
        session = await session_of(client)
        await describe(client, session)
        assert (await run(client, session, script))["outcome"] == "completed"
    assert (calls, len(person.forms)) == ([("add", 0, 2), ("add", 1, 2)], 2)


async def test_each_tool_has_a_field_of_its_own(asked, session_of, calls):
    person = Person(accept(tool_1="refuse", tool_2="allow these calls"))
    script = (
        "import asyncio\nfrom tools import desk\n"
        "await asyncio.gather(desk.fail(reason='x'), desk.add(a=1), return_exceptions=True)\n1"
    )
    async with asked(person) as client:
        session = await session_of(client)
        await describe(client, session)
        result = await run(client, session, script)
    assert [(one["tool"], one["decision"]) for one in result["calls"]] == [("fail", "denied"), ("add", "allowed")]
    assert calls == [("add", 1, 2)]


TELLING = """
from tools import desk
for n in range(4):
    try:
        await desk.add(a=n)
    except PermissionError as error:
        print(error)
"""


async def test_a_number_of_calls_is_allowed_and_no_more(asked, session_of, calls):
    person = Person(
        accept(tool_1="allow every call of the tool in this run", tool_1_calls="3"),
        accept(tool_1="refuse", words="enough"),
    )
    async with asked(person) as client:
        session = await session_of(client)
        await describe(client, session)
        result = await run(client, session, TELLING)
    assert result["stdout"] == "desk.add was refused: enough.\n"
    assert [call[1] for call in calls] == [0, 1, 2]


async def test_of_the_waiting_calls_the_first_so_many_are_allowed(asked, session_of, calls):
    script = (
        "import asyncio\nfrom tools import desk\n"
        "await asyncio.gather(*(desk.add(a=n) for n in range(5)), return_exceptions=True)\n1"
    )
    async with asked(Person(accept(tool_1="allow these calls", tool_1_calls=2))) as client:
        session = await session_of(client)
        await describe(client, session)
        await run(client, session, script)
    assert sorted(calls) == [("add", 0, 2), ("add", 1, 2)]


async def test_a_persons_own_tests_are_what_later_calls_must_pass(asked, session_of, calls):
    person = Person(
        accept(tool_1="allow calls like these in this run", tool_1_tests='{"/a": {"max": 1}}'), accept(), accept()
    )
    async with asked(person) as client:
        session = await session_of(client)
        await describe(client, session)
        await run(client, session, TELLING)
    assert ([call[1] for call in calls], len(person.forms)) == ([0, 1], 3)
    assert (
        person.forms[0].requested_schema["properties"]["tool_1_tests"]["default"]
        == '{"":{"keys":["a"]},"/a":{"equals":0}}'
    )


@pytest.mark.parametrize(
    "tests", ["{", "[1]", '{"/a": {"max": 1}, "/a": {"min": 0}}', '{"a": {}}', '{"/a": {"min": 2, "max": 1}}', "null"]
)
async def test_tests_that_cannot_be_used_are_asked_for_again_and_allow_nothing(asked, session_of, calls, tests):
    like = "allow calls like these in this run"
    person = Person(*[accept(tool_1=like, tool_1_tests=tests)] * 3)
    async with asked(person) as client:
        session = await session_of(client)
        await describe(client, session)
        result = await run(client, session, "from tools import desk\nawait desk.add(a=1)")
    assert result["error"]["message"] == "desk.add was refused."
    assert (calls, len(person.forms)) == ([], 3)
    assert person.forms[1].message.startswith("These tests cannot be used: ")


def answer_to(**content):
    """Return what a form says about the one call that it was shown for."""
    question = Question((PendingCall("desk", "add", "sha256:1", {"a": 1}),))
    [answer] = _answers(question, accept(**content), with_texts=True)
    return answer


EVERY = "allow every call of the tool in this run"
LIKE = "allow calls like these in this run"
NONE = "refuse every call of the tool in this run"


NUMBERS = [0, -1, 2.5, 10**9, 1e300, True, False, float("nan"), float("inf")]


@pytest.mark.parametrize("calls", [*NUMBERS, "0", "-1", "2.5", "3 ½", "³", "many", "9" * 10, ["3"]])
@pytest.mark.parametrize("choice", [EVERY, LIKE, "allow these calls"])
def test_a_count_that_is_none_is_a_refusal(choice, calls):
    assert answer_to(tool_1=choice, tool_1_calls=calls) == Verdict((0,), allow=False)


def test_a_count_may_be_left_out_or_written_as_any_number():
    written: dict[object, int | None] = {3: 3, 4.0: 4, "3": 3, " 12 ": 12, "": None, " ": None, None: None}
    assert {calls: answer_to(tool_1=EVERY, tool_1_calls=calls).calls for calls in written} == written


def question_of(tools: int, **arguments) -> Question:
    """Return a question about one call of each of several tools."""
    return Question(tuple(PendingCall("desk", f"add_{n}", "d", {"a": n, **arguments}) for n in range(1, tools + 1)))


@pytest.mark.parametrize(("tools", "with_texts"), [(1, False), (4, True), (10, False)])
def test_a_form_says_what_calls_like_these_are_where_it_has_no_field_for_that(tools, with_texts):
    message, schema = form_of(question_of(tools, path="a\u202eb"), with_texts=with_texts)
    tests = r'{"":{"keys":["a","path"]},"/a":{"equals":1},"/path":{"equals":"a\u202eb"}}'
    assert f"Calls like these of desk.add_1 have: {tests}" in message.splitlines()
    assert LIKE in schema["properties"]["tool_1"]["enum"]
    assert "tool_1_tests" not in schema["properties"]


@pytest.mark.parametrize(
    ("question", "with_texts", "field"),
    [
        (question_of(1, path="x" * 2_000), False, "tool_1"),
        (question_of(1, path="x" * 2_000), True, "tool_1"),
        (question_of(10, path="x" * 200), False, "tool_10"),
        (question_of(11), True, "all"),
    ],
)
def test_calls_like_these_cannot_be_chosen_where_a_form_cannot_say_what_they_are(question, with_texts, field):
    message, schema = form_of(question, with_texts=with_texts)
    assert schema["properties"][field]["enum"] == ["refuse", "allow these calls", EVERY, NONE]
    assert "tool_1_tests" not in schema["properties"]
    assert "Calls like these" not in message
    for choice in (LIKE, "always allow calls like these"):
        answers = _answers(question, accept(**{field: choice}), with_texts=with_texts)
        assert answers[-1] == Verdict((len(question.calls) - 1,), allow=False)
    allowed = _answers(question, accept(**{field: "allow these calls"}), with_texts=with_texts)
    assert allowed[-1] == Verdict((len(question.calls) - 1,), allow=True)


TEXTS = ["tool_1_calls", "tool_1_tests", "words"]


@pytest.mark.parametrize(("name", "texts"), [("claude-code", TEXTS), ("codex-mcp-client", [])])
async def test_a_form_has_no_numbers_and_texts_where_they_may_stay_empty_alone(asked, calls, name, texts):
    """Codex shows no form that has a number, and its person cannot leave a text empty."""
    person = Person(accept(tool_1="allow these calls"))
    async with asked(person, name) as client:
        begun = await client.call_tool("execute_code", {"code": "1", "session": "new"})
        handle = re.findall('session: "(.*?)"', begun.content[0].text)[-1]
        await describe(client, {"session": handle})
        code = "from tools import desk\nawait desk.add(a=1)"
        await client.call_tool("execute_code", {"code": code, "session": handle})
    fields = person.forms[0].requested_schema["properties"]
    assert {name: field["type"] for name, field in fields.items()} == dict.fromkeys(["tool_1", *texts], "string")
    assert calls == [("add", 1, 2)]


@pytest.mark.parametrize("tests", [["x"], [], 0, 1.5, True, False])
def test_tests_that_are_no_text_are_a_refusal(tests):
    assert answer_to(tool_1=LIKE, tool_1_tests=tests) == Verdict((0,), allow=False)


@pytest.mark.parametrize("mode", ["auto"])
async def test_an_answer_to_the_question_before_is_none_to_this_one(asked, session_of, calls, mode):  # noqa: ARG001
    """The first question has run out of time when its yes comes; the second must not be answered by it."""
    script = "from tools import desk\ntry: await desk.add(a=1)\nexcept PermissionError: pass\nawait desk.add(a=666)"
    async with asked(Person(), answer_timeout_seconds=1.0) as client:
        session = await session_of(client)
        await describe(client, session)
        arguments = {"code": script, **session}
        first = await client.session.call_tool("execute_code", arguments, allow_input_required=True)
        assert isinstance(first, t.InputRequiredResult)
        [key] = shown = list(first.input_requests or {})

        async def again(**answers):
            repeated = await client.session.call_tool(
                "execute_code", arguments, request_state=first.request_state, allow_input_required=True, **answers
            )
            assert isinstance(repeated, t.InputRequiredResult)
            return list(repeated.input_requests or {})

        while shown == [key]:
            shown = await again()
        assert await again(input_responses={key: accept(tool_1="allow these calls")}) == shown
    assert calls == []


async def test_an_answer_that_nobody_comes_for_is_forgotten(desk_server, monkeypatch):
    monkeypatch.setattr("broker.server.asking.KEPT_SECONDS", 0.0)
    config = Config(policy=PolicyConfig(answer_timeout_seconds=0.05))
    with anyio.fail_after(60):
        async with Broker(config, servers={"desk": desk_server}) as broker:
            session = broker.session()
            await session.get_tool_details(["desk.add"])
            server = BrokerServer(broker, make_session=lambda _: session)
            async with Client(server.mcp, elicitation_callback=Person()) as client:

                async def begin(number):
                    arguments = {"code": f"from tools import desk\nawait desk.add(a={number})"}
                    return await client.session.call_tool("execute_code", arguments, allow_input_required=True)

                first = await begin(1)
                assert isinstance(first, t.InputRequiredResult)
                [kept] = server._asking._kept.values()
                while kept.over_at is None:
                    await anyio.lowlevel.checkpoint()
                second = await begin(2)
                assert isinstance(second, t.InputRequiredResult)
                assert list(server._asking._kept) == [(second.request_state or "").partition(".")[0]]


async def test_no_answer_in_time_is_a_refusal(asked, session_of, calls):
    class Slow(Person):
        async def __call__(self, _ctx, params):
            self.forms.append(params)
            await anyio.sleep(0.5)
            return accept(tool_1="allow these calls")

    person = Slow()
    async with asked(person, answer_timeout_seconds=0.1) as client:
        session = await session_of(client)
        await describe(client, session)
        result = await run(client, session, "from tools import desk\nawait desk.add(a=1)")
    assert result["error"]["message"] == "desk.add was refused: nobody answered within 0.1 s."
    assert (calls, len(person.forms)) == ([], 1)


async def test_a_client_without_forms_is_not_asked(asked, session_of):
    async with asked(None) as client:
        session = await session_of(client)
        await describe(client, session)
        result = await run(client, session, "from tools import desk\nawait desk.add(a=1)")
    assert "nobody is there to ask" in result["error"]["message"]


@pytest.mark.parametrize("mode", ["auto"])
async def test_a_run_waits_between_two_requests_and_for_its_own_caller_only(asked, session_of, calls, mode):  # noqa: ARG001
    async with asked(Person()) as client:
        session = await session_of(client)
        await describe(client, session)
        arguments = {"code": "from tools import desk\nawait desk.add(a=1)", **session}
        first = await client.session.call_tool("execute_code", arguments, allow_input_required=True)
        assert isinstance(first, t.InputRequiredResult)
        assert calls == []
        [key] = first.input_requests or {}
        yes: t.InputResponses = {key: accept(tool_1="allow these calls")}
        others = [({**arguments, "code": "1"}, first.request_state)]
        others += [(arguments, state) for state in (f"{first.request_state}x", "", "\ud800")]
        for changed, state in others:
            with pytest.raises(MCPError, match="of no run that waits"):
                await client.session.call_tool(
                    "execute_code", changed, input_responses=yes, request_state=state, allow_input_required=True
                )
        assert calls == []
        again = await client.session.call_tool(
            "execute_code", arguments, input_responses=yes, request_state=first.request_state, allow_input_required=True
        )
        assert isinstance(again, t.CallToolResult)
        assert (again.structured_content or {})["value"] == 3
        with pytest.raises(MCPError, match="of no run that waits"):
            await client.session.call_tool(
                "execute_code", arguments, input_responses=yes, request_state=first.request_state
            )
    assert calls == [("add", 1, 2)]
