"""Every way to answer a question, through a whole run: a callback, a box that parks the run, HTTP."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
import httpx2
import pytest
from mcp.server import MCPServer

from broker import Broker, Config, Form, FormReply, Grant, OpenForm, PolicyConfig, QuestionBox, Verdict
from broker.authorization.choices import Choice, answers_of
from broker.authorization.http_answers import answers_app

if TYPE_CHECKING:
    from broker.authorization.question_box import OpenQuestion

pytestmark = pytest.mark.anyio

TOKEN = "a-token-of-the-tests"  # noqa: S105  # of an application in this process
SCRIPT = """
import asyncio
from tools import desk
await asyncio.gather(*(desk.note(text=f"note {n}") for n in range(3)))
try:
    await desk.note(text="something else")
except PermissionError as error:
    print(error)
"""
REFUSED = "desk.note was refused: not that one.\n"


@pytest.fixture
def opened(calls):
    @asynccontextmanager
    async def open_broker(answerer, **policy):
        server = MCPServer("desk")

        @server.tool()
        def note(text: str) -> str:
            """Keeps a note."""
            calls.append(text)
            return text

        with anyio.fail_after(60):
            async with Broker(Config(policy=PolicyConfig(**policy)), servers={"desk": server}) as broker:
                yield broker.session(answerer=answerer)

    return open_broker


def choice_for(question) -> Choice:
    if len(question.calls) == 3:
        return Choice(decision="alike")
    return Choice(decision="deny", note="not that one")


async def test_a_callback_of_the_embedding_host_answers(opened, calls):
    class Host:
        async def answer(self, question):
            return answers_of(question, [choice_for(question)])

    async with opened(Host()) as session:
        result = await session.execute_code(SCRIPT, describe_references=True)
    assert (result.outcome, result.stdout) == ("completed", REFUSED)
    assert sorted(calls) == ["note 0", "note 1", "note 2"]


async def test_with_nobody_there_yet_the_run_is_parked_and_resumed(opened, calls):
    box = QuestionBox()
    async with opened(box) as session:
        parked = await session.execute_code(SCRIPT, describe_references=True, park=True)
        assert (parked.outcome, calls) == ("parked", [])
        assert parked.waits_for is not None
        assert parked.waits_for.calls == 3
        assert parked.waits_for.text.startswith("A script wants to call tools:\n1. desk.note: 3 calls\n")
        [asked] = box.open
        assert parked.waits_for.question == asked.id
        assert box.reply(asked.id, answers_of(asked.question, [choice_for(asked.question)]))
        again = await session.wait_for(parked.run_id)
        assert (again.outcome, again.run_id) == ("parked", parked.run_id)
        assert [call.status for call in again.calls] == ["ok"] * 3
        [asked] = box.open
        assert box.reply(asked.id, [Verdict((0,), allow=False, note="not that one")])
        result = await session.wait_for(parked.run_id)
        assert (result.outcome, result.stdout, result.run_id) == ("completed", REFUSED, parked.run_id)
        assert sorted(calls) == ["note 0", "note 1", "note 2"]
        with pytest.raises(KeyError, match="is not parked here for this principal, or its result was fetched"):
            await session.wait_for(parked.run_id)


@pytest.mark.parametrize("given", [Grant("desk.*"), "yes", ["yes"], [True], True, None])
async def test_what_is_no_list_of_answers_is_refused_and_the_question_stays_open(opened, calls, given):
    box = QuestionBox()
    async with opened(box) as session:
        parked = await session.execute_code(SCRIPT, describe_references=True, park=True)
        [asked] = box.open
        with pytest.raises(TypeError, match="is answered by a list of Grant, Denial and Verdict, not by "):
            box.reply(asked.id, given)
        with pytest.raises(TypeError, match="question_id is text, not a OpenQuestion"):
            box.reply(cast("str", asked), [])
        assert box.open == (asked,)
        assert box.reply(asked.id, [Verdict((0, 1, 2), allow=True)])
        await session.wait_for(parked.run_id)
    assert sorted(calls) == ["note 0", "note 1", "note 2"]


async def test_what_is_no_reply_to_a_form_is_refused_and_the_form_stays_open():
    asked = OpenForm("f_1", Form("curious", "ask", ("Who?",)))
    wrong: tuple[Any, ...] = ("accept", {"name": "Anna"}, ("accept", {}))
    for given in wrong:
        with pytest.raises(TypeError, match=r"answered by a FormReply, as FormReply\('accept', \{'name': 'Anna'\}\), "):
            asked.reply(given)
    with pytest.raises(ValueError, match="content: there is no field 'name'"):
        asked.reply(FormReply("accept", {"name": "Anna"}))
    assert asked.reply(FormReply("decline"))


async def test_a_run_that_waits_in_memory_has_what_it_printed_so_far(opened):
    script = "import sys\nprint('begins')\nprint('odd', file=sys.stderr)\nawait desk.note(text='x')"
    async with opened(QuestionBox()) as session:
        parked = await session.execute_code(script, describe_references=True, park=True)
    assert (parked.outcome, parked.stdout, parked.stderr) == ("parked", "begins\n", "odd\n")


async def test_who_made_the_box_is_told_of_its_questions_when_runs_are_parked(opened):
    told: list[OpenQuestion] = []
    box = QuestionBox(on_open=told.append)
    async with opened(box) as session:
        parked = await session.execute_code(SCRIPT, describe_references=True, park=True)
        assert (parked.outcome, told) == ("parked", list(box.open))


async def test_a_parked_run_that_nobody_answers_goes_on_with_a_refusal(opened, calls):
    box = QuestionBox()
    script = "from tools import desk\nawait desk.note(text='x')"
    async with opened(box, answer_timeout_seconds=0.2) as session:
        parked = await session.execute_code(script, describe_references=True, park=True)
        assert parked.outcome == "parked"
        result = await session.wait_for(parked.run_id)
    assert result.error is not None
    assert result.error.message == "desk.note was refused: nobody answered within 0.2 s."
    assert (calls, box.open) == ([], ())


async def test_several_runs_are_parked_at_once_and_each_gets_its_own_answer(opened, calls):
    box = QuestionBox()
    async with opened(box) as session:
        parked = [
            await session.execute_code(
                f"from tools import desk\nawait desk.note(text='{n}')", describe_references=True, park=True
            )
            for n in range(3)
        ]
        assert len(box.open) == 3
        for n in (2, 0):
            question = parked[n].waits_for
            assert question is not None
            box.reply(question.question, [Verdict((0,), allow=True)])
        assert [(await session.wait_for(parked[n].run_id)).value for n in (2, 0)] == ["2", "0"]
    assert sorted(calls) == ["0", "2"]


async def test_a_script_that_asks_nothing_is_not_parked(opened):
    async with opened(QuestionBox()) as session:
        done = await session.execute_code("1 + 1", park=True)
    assert (done.outcome, done.value, done.waits_for) == ("completed", 2, None)


async def test_parking_needs_a_box(opened):
    async with opened(None) as session:
        with pytest.raises(ValueError, match="QuestionBox"):
            await session.execute_code("1", park=True)
        with pytest.raises(KeyError, match="run_0 is not parked here: the session's answerer is no QuestionBox"):
            await session.wait_for("run_0")


@asynccontextmanager
async def client(box, token=TOKEN):
    transport = httpx2.ASGITransport(app=answers_app(box, token=TOKEN))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(transport=transport, base_url="http://broker", headers=headers) as http:
        yield http


async def test_an_http_endpoint_answers(opened, calls):
    box = QuestionBox("http")
    asked = anyio.Event()
    results = []

    async def run(session):
        results.append(await session.execute_code(SCRIPT, describe_references=True))

    async with opened(box) as session, anyio.create_task_group() as tasks, client(box) as http:
        box.on_open = lambda _: asked.set()
        tasks.start_soon(run, session)
        await asked.wait()
        asked = anyio.Event()
        [shown] = (await http.get("/questions")).json()["questions"]
        [tool] = shown["tools"]
        assert (tool["tool"], tool["calls"]) == ("desk.note", 3)
        assert tool["suggestion"] == {"": {"keys": ["text"]}, "/text": {"path": "note *"}}
        reply = {"choices": [{"group": 0, "decision": "alike", "arguments": {"/text": {"glob": "note ?"}}}]}
        assert (await http.post(f"/questions/{shown['id']}", json=reply)).status_code == 204
        assert (await http.post(f"/questions/{shown['id']}", json=reply)).status_code in {404, 409}
        await asked.wait()
        late = await http.post(f"/questions/{shown['id']}", json=reply)
        assert (late.status_code, "it was answered" in late.text) == (404, True)
        [shown] = (await http.get("/questions")).json()["questions"]
        reply = {"choices": [{"decision": "deny", "note": "not that one"}]}
        assert (await http.post(f"/questions/{shown['id']}", json=reply)).status_code == 204
    assert results[0].stdout == REFUSED
    assert sorted(calls) == ["note 0", "note 1", "note 2"]


BAD = {
    "no JSON": (b"{", 400, "the body: Invalid JSON"),
    "nothing chosen": (b"{}", 400, "choices: Field required"),
    "an unknown decision": (b'{"choices": [{"decision": "allow"}]}', 400, "choices.0.decision"),
    "a tool that is not asked about": (
        b'{"choices": [{"decision": "these", "group": 7}]}',
        400,
        "the question has 1 tool, counted from 0, and none at 7",
    ),
    "an impossible predicate": (
        b'{"choices": [{"decision": "alike", "arguments": {"/a": {"min": 2, "max": 1}}}]}',
        400,
        "can never hold",
    ),
    "too long": (b" " * 300_000, 400, "longer than 262144 bytes"),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_answer_over_http_is_explained_and_answers_nothing(opened, calls, case):
    body, status, text = BAD[case]
    box = QuestionBox("http")
    async with opened(box) as session, client(box) as http:
        await session.execute_code(SCRIPT, describe_references=True, park=True)
        [asked] = box.open
        response = await http.post(f"/questions/{asked.id}", content=body)
        assert (response.status_code, text in response.json()["error"]) == (status, True), response.text
        assert box.open == (asked,)
    assert calls == []


@pytest.mark.parametrize(("is_over", "status"), [(True, 404), (False, 204)])
async def test_an_answer_of_which_the_rest_comes_too_late_is_not_said_to_be_taken(opened, is_over, status):
    asked, begun, gone = anyio.Event(), anyio.Event(), anyio.Event()
    box = QuestionBox(on_open=lambda _asked: asked.set())
    run = anyio.CancelScope()
    said = []

    async def execute(session):
        with run:
            await session.execute_code(SCRIPT, describe_references=True)
        gone.set()

    async def body():
        yield b'{"choices": '
        begun.set()
        if is_over:
            await gone.wait()
        yield b'[{"decision": "these"}]}'

    async def answer(http):
        said.append((await http.post(f"/questions/{box.open[0].id}", content=body())).status_code)
        run.cancel()

    async with opened(box) as session, client(box) as http, anyio.create_task_group() as tasks:
        tasks.start_soon(execute, session)
        await asked.wait()
        tasks.start_soon(answer, http)
        await begun.wait()
        if is_over:
            run.cancel()
    assert said == [status]


async def test_without_the_token_nothing_is_shown_or_answered(opened, calls):
    box = QuestionBox("http")
    async with opened(box) as session:
        await session.execute_code(SCRIPT, describe_references=True, park=True)
        [asked] = box.open
        for token in ("", "another-token-than-that"):
            async with client(box, token) as http:
                reply = {"choices": [{"decision": "any"}]}
                for response in (
                    await http.get("/questions"),
                    await http.post(f"/questions/{asked.id}", json=reply),
                ):
                    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
        assert box.open == (asked,)
    assert calls == []
    with pytest.raises(ValueError, match="at least 16 characters"):
        answers_app(box, token="short")  # noqa: S106  # what is refused


async def test_a_grant_is_taken_back_while_a_script_runs(opened, calls):
    class Host:
        """Allows everything, and takes it back when the second call is made."""

        async def answer(self, _question):
            return [Grant("desk.*")]

    script = """
from tools import desk
await desk.note(text="first")
await desk.note(text="second")
"""
    async with opened(Host()) as session:

        def revoke(_record, _ended, _made):
            session._desk.answerer = None
            for held in session._desk.book.held:
                session.revoke(held.id)

        result = await session.execute_code(script, describe_references=True, on_call=revoke)
    assert calls == ["first"]
    assert result.is_refused
