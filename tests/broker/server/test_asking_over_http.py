"""Questions over real sockets: the SDK's client of each era on streamable HTTP; calls of scripts, forms of servers."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio
import anyio.lowlevel
import httpx2
import mcp.types as t
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server

from broker import Broker
from broker.server import BrokerServer, ServeSettings
from broker.server.identity import SESSION_HEADER

pytestmark = pytest.mark.anyio

FORM = t.ElicitRequestFormParams(
    message="Which city?", requested_schema={"type": "object", "properties": {"city": {"type": "string"}}}
)
URL = t.ElicitRequestURLParams(message="Pay.", url="https://pay.example/1", elicitation_id="1")


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """Serving HTTP needs asyncio."""
    return request.param


@pytest.fixture
def told():
    """What the curious server was told."""
    return []


@pytest.fixture
def curious(told):
    """A server that asks before it answers."""

    async def list_tools(_ctx, _params):
        schema = {"type": "object", "properties": {"how": {"type": "string"}}, "required": ["how"]}
        return t.ListToolsResult(tools=[t.Tool(name="ask", description="Asks.", input_schema=schema)])

    async def call_tool(_ctx, params):
        if params.input_responses is None:
            asked = t.ElicitRequest(params=URL if params.arguments["how"] == "url" else FORM)
            return t.InputRequiredResult(input_requests={"a": asked}, request_state="1")
        answer = params.input_responses["a"]
        told.append((answer.action, answer.content))
        if params.arguments["how"] == "twice" and params.request_state == "1":
            return t.InputRequiredResult(input_requests={"a": t.ElicitRequest(params=FORM)}, request_state="2")
        return t.CallToolResult(content=[t.TextContent(type="text", text=answer.action)])

    return Server("curious", on_list_tools=list_tools, on_call_tool=call_tool)


@pytest.fixture
def connected(desk_server, curious, mode, listening):
    """Clients over HTTP, one for each person, to one broker in which nothing is allowed."""

    @asynccontextmanager
    async def serve():
        async with (
            Broker(servers={"desk": desk_server, "curious": curious}) as broker,
            listening(BrokerServer(broker, ServeSettings())) as url,
        ):
            yield url

    @asynccontextmanager
    async def connect(*people):
        with anyio.fail_after(60):
            async with serve() as url, AsyncExitStack() as stack:
                transports = [streamable_http_client(url) for _ in people]
                pairs = zip(transports, people, strict=True)
                clients = [Client(transport, mode=mode, elicitation_callback=person) for transport, person in pairs]
                yield [await stack.enter_async_context(client) for client in clients]

    return connect


class Person:
    """Answers forms with prepared content, and notes what was shown."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.shown = []

    async def __call__(self, _ctx, params):
        self.shown.append(params)
        return self.answers.pop(0)


def accept(**content):
    return t.ElicitResult(action="accept", content=content or None)


async def begin(client):
    """Begin a session and describe the tools; return how to name it."""
    result = await client.call_tool("execute_code", {"code": "1"})
    handle = result.structured_content.get("session")
    session = {"session": handle} if handle else {}
    await client.call_tool("get_tool_details", {"tools": ["desk.add", "desk.wait", "curious.ask"], **session})
    return session


async def run(client, session, code):
    return (await client.call_tool("execute_code", {"code": code, **session})).structured_content


LOOP = """
import asyncio
from tools import desk
await asyncio.gather(*(desk.add(a=n, b=0) for n in range(3)))
try:
    await desk.add(a=3, b=1)
except PermissionError as error:
    print(error)
"""


async def test_a_loop_is_approved_with_one_form(connected, calls):
    person = Person(accept(tool_1="allow calls like these in this run"), accept(tool_1="refuse", words="only b of 0"))
    async with connected(person) as [client]:
        result = await run(client, await begin(client), LOOP)
    assert result["stdout"] == "desk.add was refused: only b of 0.\n"
    assert sorted(calls) == [("add", n, 0) for n in range(3)]
    assert len(person.shown) == 2


async def test_a_client_hears_of_its_run_also_after_a_question(connected, started, monkeypatch):
    monkeypatch.setattr("broker.server.notices.BEAT_SECONDS", 0.01)
    heard = anyio.Event()

    async def note(*_told) -> None:
        if started.is_set():
            heard.set()

    async with connected(Person(accept(tool_1="allow these calls"))) as [client]:
        session = await begin(client)
        arguments = {"code": "from tools import desk\nawait desk.wait()", **session}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(client.call_tool, "execute_code", arguments, progress_callback=note))
            await heard.wait()
            tasks.cancel_scope.cancel()


async def test_each_client_is_asked_about_its_own_calls_alone(connected, calls):
    people = Person(accept(tool_1="allow these calls")), Person(accept(tool_1="refuse"))
    results = {}
    async with connected(*people) as clients:
        sessions = [await begin(client) for client in clients]

        async def one(number):
            code = f"from tools import desk\nawait desk.add(a={number})"
            results[number] = await run(clients[number], sessions[number], code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, 0)
            tasks.start_soon(one, 1)
    assert (results[0]["outcome"], results[1]["error"]["type"]) == ("completed", "ToolRefusedError")
    assert [f"a={number}" in person.shown[0].message for number, person in enumerate(people)] == [True, True]
    assert calls == [("add", 0, 2)]


async def test_what_was_allowed_to_one_client_is_not_to_another(connected, calls):
    allowing, refusing = Person(accept(tool_1="allow every call of the tool in this run")), Person(accept())
    script = "from tools import desk\nawait desk.add(a=1)"
    async with connected(allowing, refusing) as clients:
        for client in clients:
            await run(client, await begin(client), script)
    assert (calls, len(refusing.shown)) == ([("add", 1, 2)], 1)


async def test_a_form_of_a_server_reaches_the_person_behind_the_client_with_its_name(connected, told):
    person = Person(accept(tool_1="allow these calls"), accept(city="Bern"))
    async with connected(person) as [client]:
        result = await run(client, await begin(client), "from tools import curious\nawait curious.ask(how='form')")
    assert (result["value"], told) == ("accept", [("accept", {"city": "Bern"})])
    form = person.shown[1]
    assert form.message == "The server curious asks (while its tool ask is called):\n| Which city?"
    assert form.requested_schema["properties"] == {"city": {"type": "string"}}


async def test_an_address_of_a_server_is_passed_on_as_one(connected, told):
    person = Person(accept(tool_1="allow these calls"), accept())
    async with connected(person) as [client]:
        await run(client, await begin(client), "from tools import curious\nawait curious.ask(how='url')")
    assert told == [("accept", None)]
    shown = person.shown[1]
    assert (shown.mode, shown.url) == ("url", "https://pay.example/1")
    assert shown.message.startswith("The server curious asks")


@pytest.mark.parametrize("mode", ["auto"])
async def test_a_servers_question_keeps_its_key_and_the_answer_to_the_one_before_is_none_to_it(connected, told, mode):  # noqa: ARG001
    async with connected(Person()) as [client]:
        code = "from tools import curious\nawait curious.ask(how='twice')"
        arguments = {"code": code, **await begin(client)}

        async def call(state=None, **answers):
            more = {"input_responses": answers, "request_state": state} if state else {}
            return await client.session.call_tool("execute_code", arguments, allow_input_required=True, **more)

        about_the_call = await call()
        [key] = about_the_call.input_requests
        first = await call(about_the_call.request_state, **{key: accept(tool_1="allow these calls")})
        second = await call(first.request_state, a=accept(city="Bern"))
        assert [list(one.input_requests) for one in (first, second)] == [["a"], ["a"]]
        assert await call(first.request_state, a=accept(city="Bern")) == second
        done = await call(second.request_state, a=accept(city="Rome"))
    assert done.structured_content["value"] == "accept"
    assert told == [("accept", {"city": "Bern"}), ("accept", {"city": "Rome"})]


async def test_a_person_who_declines_a_servers_form_has_declined_it(connected, told):
    person = Person(accept(tool_1="allow these calls"), t.ElicitResult(action="decline", content={"city": "Bern"}))
    async with connected(person) as [client]:
        result = await run(client, await begin(client), "from tools import curious\nawait curious.ask(how='form')")
    assert (result["value"], told) == ("decline", [("decline", None)])


FORGED = "no\n2026-11-28T12:00:00Z [error    ] the store is gone \x1b[31m"


@pytest.mark.parametrize("mode", ["legacy"])
@pytest.mark.parametrize("is_server", [False, True], ids=["about a call", "of a server"])
async def test_what_a_client_says_in_an_error_about_a_question_is_not_logged(connected, told, is_server, caplog):
    person = Person(*[accept(tool_1="allow these calls")] * is_server, t.ErrorData(code=-1, message=FORGED))
    with caplog.at_level("WARNING", "codemode"):
        async with connected(person) as [client]:
            result = await run(client, await begin(client), "from tools import curious\nawait curious.ask(how='form')")
    if is_server:
        assert (result["value"], told) == ("cancel", [("cancel", None)])
    else:
        assert "curious.ask was refused: whoever was asked failed to answer." in result["error"]["message"]
    [logged] = [record for record in caplog.records if record.name == "codemode"]
    assert "the client answered elicitation/create with error -1" in logged.getMessage()
    assert logged.exc_info is None
    assert "store" not in caplog.text


@pytest.mark.parametrize("mode", ["legacy"])
async def test_a_client_that_ends_its_session_while_it_is_asked_is_not_said_to_have_answered(
    desk_server, calls, mode, listening, caplog
):
    sent: dict[str, str] = {}

    async def note(request):
        sent.update(request.headers)

    async def leave(_ctx, _params):
        named = {SESSION_HEADER: sent[SESSION_HEADER]}
        assert (await http.delete(url, headers=named)).status_code == 200
        return accept(tool_1="allow these calls")

    with anyio.fail_after(60):
        async with (
            Broker(servers={"desk": desk_server}) as broker,
            listening(BrokerServer(broker, ServeSettings())) as url,
            httpx2.AsyncClient(timeout=60, event_hooks={"request": [note]}) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode, elicitation_callback=leave) as client,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(run, client, await begin(client), "from tools import desk\nawait desk.add(a=1, b=2)")
            while not caplog.records or "answerer" not in caplog.text:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    assert "the client's session ended before it answered elicitation/create" in caplog.text
    assert calls == []
