"""Code of the embedding program that exits, panics, or awaits what somebody cancelled: a failed call, no more."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import asynccontextmanager
from typing import Annotated

import anyio
import anyio.lowlevel
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from pydantic import BaseModel

from broker import Broker, FormReply, Grant, Verdict
from broker.callbacks import is_failure
from broker.errors import SearchError
from broker.texts import search_texts

pytestmark = pytest.mark.anyio

REFUSED = ("ToolRefusedError", "files.plain was refused: whoever was asked failed to answer.")
FAILED = ("ToolError", "answered with JSON-RPC error -32603. It may have acted: check before you call again.")
NO_ANSWER = ("ToolError", "extract() failed: the model gave no usable answer.")


class Reason(BaseModel):
    reason: str


def why() -> Elicit[Reason]:
    return Elicit("Why?", Reason)


async def await_a_cancelled_task():
    task = asyncio.ensure_future(anyio.sleep_forever())
    await asyncio.sleep(0)
    task.cancel()
    await task


async def leave_the_program():
    sys.exit(2)


async def leave_the_program_beside_others():
    async with anyio.create_task_group():
        sys.exit(2)


class Panic(BaseException):
    """As PyO3's PanicException, which is no `Exception` either."""


async def panic():
    raise Panic("index out of bounds")


@pytest.fixture(params=[leave_the_program, leave_the_program_beside_others, panic, await_a_cancelled_task])
def go_wrong(request, anyio_backend_name):
    if anyio_backend_name == "trio" and request.param is await_a_cancelled_task:
        return leave_the_program  # nothing of trio's raises its cancellation elsewhere
    return request.param


def servers(go_wrong):
    async def plain() -> str:
        await go_wrong()
        return "not reached"

    def in_a_thread() -> str:
        return sys.exit("usage: ...")

    def panics_in_a_thread() -> str:
        raise Panic("index out of bounds")

    async def fine() -> str:
        return "fine"

    async def asked(said: Annotated[Reason, Resolve(why)]) -> str:
        return said.reason

    server = MCPServer("server")

    @server.tool()
    async def with_context(ctx: Context) -> str:
        assert ctx.request_id is not None
        await go_wrong()
        return "not reached"

    server.add_tool(plain)
    server.add_tool(panics_in_a_thread)
    return {"files": [plain, in_a_thread, panics_in_a_thread, fine, asked], "server": server}


@pytest.fixture
async def opened(go_wrong):
    with anyio.fail_after(60):
        async with Broker(servers=servers(go_wrong)) as broker:
            yield broker


async def raised_by(session, call):
    """Return what a script gets of a call, which goes on afterwards."""
    script = f"""
from tools import files, server, ToolError
try:
    await {call}
except ToolError as error:
    found = type(error).__name__, str(error)
found
"""
    result = await session.execute_code(script, describe_references=True)
    assert result.error is None, result.error
    return tuple(result.value)


@pytest.mark.parametrize(
    "call",
    [
        "files.plain()",
        "files.in_a_thread()",
        "files.panics_in_a_thread()",
        "server.plain()",
        "server.panics_in_a_thread()",
        "server.with_context()",
    ],
)
async def test_a_tool_of_the_program_fails_alone(opened, call):
    session = opened.session(grants=[Grant("*")])
    kind, said = await raised_by(session, call)
    after = await session.execute_code("from tools import files\nawait files.fine()", describe_references=True)
    assert (kind, FAILED[1] in said, after.value) == (FAILED[0], True, "fine")


async def test_a_model_of_the_program_fails_alone(opened, go_wrong):
    async def extractor(_extraction):
        return await go_wrong()

    kind, said = await raised_by(opened.session(extractor=extractor), "extract('x', int)")
    assert (kind, said.startswith(NO_ANSWER[1])) == (NO_ANSWER[0], True)


async def test_whoever_answers_for_the_program_fails_alone(opened, go_wrong):
    class Answerer:
        async def answer(self, _question):
            return await go_wrong()

    assert await raised_by(opened.session(answerer=Answerer()), "files.plain()") == REFUSED


async def test_whoever_fills_in_forms_for_the_program_fails_alone(opened, go_wrong):
    class Answerer:
        async def answer(self, question):
            return [Verdict(group.indices, allow=True) for group in question.groups]

        async def fill(self, _form):
            return await go_wrong()

    kind, said = await raised_by(opened.session(answerer=Answerer()), "files.asked()")
    assert (kind, "cancel" in said) == ("ToolError", True), said


async def test_whoever_fills_in_a_form_with_something_else_finds_that_in_the_log(caplog):
    class Answerer:
        async def answer(self, question):
            return [Verdict(group.indices, allow=True) for group in question.groups]

        async def fill(self, _form):
            return {"reason": "not a FormReply"}

    with anyio.fail_after(60):
        async with Broker(servers=servers(anyio.sleep_forever)) as broker:
            kind, said = await raised_by(broker.session(answerer=Answerer()), "files.asked()")
    assert (kind, "cancel" in said) == ("ToolError", True), said
    assert "an answerer fills a form with a FormReply; this one did not' returned='dict'" in caplog.text


async def test_a_plain_function_in_the_place_of_an_async_one_is_named_in_the_log(caplog):
    def extractor(_extraction):
        return [1]

    def ranker(_query, _candidates):
        return ["files.plain"]

    class Silent:
        def answer(self, _question):
            return [Grant("*")]

    class Unfilled:
        async def answer(self, _question):
            return [Grant("*")]

        def fill(self, _form):
            return FormReply("accept", {"reason": "none"})

    with anyio.fail_after(60):
        async with Broker(servers=servers(anyio.sleep_forever), ranker=ranker) as broker:
            extracted = await raised_by(broker.session(extractor=extractor), "extract('x', int)")
            answered = await raised_by(broker.session(answerer=Silent()), "files.plain()")
            filled = await raised_by(broker.session(answerer=Unfilled()), "files.asked()")
            page = await broker.session().search("plain")
    assert (extracted[0], answered, filled[0]) == (NO_ANSWER[0], REFUSED, "ToolError")
    assert page.notes[0] == search_texts.NOT_RANKED
    told = re.findall(r"(\w+ is an `async def` function; this one returned a \w+)", caplog.text)
    assert list(dict.fromkeys(told)) == [
        "extractor is an `async def` function; this one returned a list",
        "answer is an `async def` function; this one returned a list",
        "fill is an `async def` function; this one returned a FormReply",
        "ranker is an `async def` function; this one returned a list",
    ]


async def test_a_plain_function_of_an_embedder_is_named_in_the_log(caplog):
    class Embedder:
        model = "none"

        def embed(self, texts):
            return [[1.0] for _ in texts]

    with anyio.fail_after(60):
        async with Broker(servers=servers(anyio.sleep_forever), embedder=Embedder(), opens_sandbox=False) as broker:
            with pytest.raises(SearchError, match=re.escape(search_texts.EMBEDDER_FAILED)):
                await broker.session().search("plain")
    assert "embed is an `async def` function; this one returned a list" in caplog.text


async def test_a_ranker_of_the_program_fails_alone(go_wrong):
    async def ranker(_query, _candidates):
        return await go_wrong()

    with anyio.fail_after(60):
        async with Broker(servers=servers(go_wrong), ranker=ranker, opens_sandbox=False) as broker:
            page = await broker.session().search("plain")
    assert page.tools[0].qualified_name == "files.plain"
    assert page.notes[0] == search_texts.NOT_RANKED


async def test_an_embedder_of_the_program_fails_alone(go_wrong):
    class Embedder:
        model = "none"

        async def embed(self, _texts):
            return await go_wrong()

    with anyio.fail_after(60):
        async with Broker(servers=servers(go_wrong), embedder=Embedder(), opens_sandbox=False) as broker:
            with pytest.raises(SearchError, match=re.escape(search_texts.EMBEDDER_FAILED)):
                await broker.session().search("plain")


async def test_a_server_of_the_program_that_cannot_begin_fails_alone(go_wrong):
    @asynccontextmanager
    async def lifespan(_server):
        await go_wrong()
        yield {}

    with anyio.fail_after(60):
        async with Broker(servers=servers(go_wrong) | {"broken": MCPServer("broken", lifespan=lifespan)}) as broker:
            await broker.wait_until_settled()
            states = {status.name: status.state for status in broker.server_statuses()}
            session = broker.session(grants=[Grant("*")])
            after = await session.execute_code("from tools import files\nawait files.fine()", describe_references=True)
    assert states == {"files": "ready", "server": "ready", "broken": "down"}
    assert after.value == "fine"


async def test_a_run_that_is_cancelled_while_a_function_waits_is_cancelled():
    reached = anyio.Event()

    async def wait() -> str:
        reached.set()
        await anyio.sleep_forever()
        return ""

    async def run():
        await session.execute_code("from tools import waiting\nawait waiting.wait()", describe_references=True)
        raise AssertionError("it went on")

    with anyio.fail_after(60):
        async with Broker(servers={"waiting": [wait]}) as broker:
            session = broker.session(grants=[Grant("*")])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await reached.wait()
                tasks.cancel_scope.cancel()


def test_ctrl_c_and_an_exit_of_a_generator_are_no_failures():
    async def told(error):
        await anyio.lowlevel.checkpoint()
        return is_failure(error)

    together = BaseExceptionGroup("", [OSError(), KeyboardInterrupt()])
    errors = (KeyboardInterrupt(), GeneratorExit(), together, OSError(), Panic())
    assert [anyio.run(told, error) for error in errors] == [False, False, False, True, True]
