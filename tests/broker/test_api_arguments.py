"""What embedding programs get wrong at first: each mistake is named where it is made, with what to write instead."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import anyio
import pytest

from broker import (
    Broker,
    BrokerServer,
    Config,
    ConfigError,
    Denial,
    FormReply,
    Grant,
    PatternError,
    QuestionBox,
    Store,
    compare_recordings,
)
from broker.authorization.predicates import Predicate
from broker.search import Detail, Filters, Mode, SearchRequest
from sandbox import Sandbox

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def everything(*args, **kwargs) -> int:
    return len(args) + len(kwargs)


def first(a: int, /, b: int) -> int:
    return a + b


def each(a: int):
    yield a


async def stream(a: int):
    yield a


class Opaque:
    """A type that JSON cannot carry."""


class Sums:
    def total(self, a: int) -> int:
        return a


def opaque(x: Opaque) -> int:
    return id(x)


async def allow(_question):
    return [Grant("sums.*")]


SERVERS: dict[str, tuple[Any, str]] = {
    "a list": ([add], "servers are given by name, as {'shop': [find_orders]}, not in a list"),
    "a function": ({"sums": add}, "servers['sums'] is one function: write [add]"),
    "a command": ({"sums": "uvx sums"}, "servers['sums'] is a str: servers to start or to reach go into the config"),
    "an entry": ({"sums": {"command": "uvx"}}, "servers['sums'] is a dict: servers to start"),
    "a class": ({"sums": Opaque}, "servers['sums'] is a type, and no server of the MCP SDK or list of functions"),
    "a number in its place": ({"sums": 5}, "servers['sums'] is a int, and no server of the MCP SDK"),
    "an object of another kind": ({"sums": Opaque()}, "servers['sums'] is a Opaque, and no server of the MCP SDK"),
    "by number": ({5: [add]}, "servers are given by name, as {'shop': [find_orders]}, not by a int"),
    "a set": ({"sums": {add}}, "servers['sums'] is a set, and no server"),
    "a lambda": ({"sums": [lambda x: x]}, "without a name: write a def for each tool"),
    "a partial": ({"sums": [functools.partial(add, 1)]}, "holds a partial without a name"),
    "a number": ({"sums": [1]}, "holds a int without a name"),
    "twice": ({"sums": [add, add]}, "holds two functions of the name 'add'"),
    "any": ({"sums": [everything]}, "everything takes *args, of which no script can be told"),
    "a generator": ({"sums": [each]}, "servers['sums']: each yields, and a tool returns once: return a list"),
    "an asynchronous one": ({"sums": [stream]}, "servers['sums']: stream yields, and a tool returns once"),
    "a class written in C": ({"sums": [dict]}, "servers['sums']: dict has no signature that a script could be told"),
    "a method of the class": ({"sums": [Sums.total]}, "total is a method without its object: take it from an instance"),
    "by position": ({"sums": [first]}, "first takes 'a' by position alone: scripts pass arguments by name"),
}


@pytest.mark.parametrize("case", SERVERS)
def test_what_is_no_server_is_named(case):
    servers, said = SERVERS[case]
    with pytest.raises(TypeError) as caught:
        Broker(servers=servers)
    assert said in str(caught.value)


async def test_a_type_that_json_cannot_carry_is_named_and_nothing_is_left_behind():
    broker = Broker(servers={"sums": [add, opaque]}, opens_sandbox=False)
    with anyio.fail_after(30), pytest.raises(TypeError, match=r"servers\['sums'\]: opaque cannot be a tool: Cannot"):
        await broker.__aenter__()
    with pytest.raises(RuntimeError, match="the broker is not open"):
        broker.session()


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        ("NotRequired", "Unable to evaluate type annotations for callable 'look': name 'NotRequired' is not defined"),
        (NoReturn, "Unable to generate pydantic-core schema for typing.NoReturn"),
    ],
)
async def test_of_a_result_of_no_type_it_is_said_which_and_nothing_of_how_the_sdk_is_set_up(annotation, said):
    def look():
        return None

    look.__annotations__["return"] = annotation
    with pytest.raises(TypeError) as caught, anyio.fail_after(30):
        await Broker(servers={"sums": [look]}, opens_sandbox=False).__aenter__()
    assert str(caught.value) == f"servers['sums']: look cannot be a tool: {said}"


async def test_a_function_is_named_whose_parameter_has_a_name_that_cannot_be_used():
    def configure(model_config: str = "small") -> str:
        return model_config

    def count(model_config: int = 2) -> int:
        return model_config

    for function in (configure, count):
        said = rf"servers\['sums'\]: {function.__name__} cannot be a tool: "
        with anyio.fail_after(30), pytest.raises(TypeError, match=said):
            await Broker(servers={"sums": [function]}, opens_sandbox=False).__aenter__()


async def test_a_function_is_named_whose_result_is_of_a_local_class_that_names_itself():
    @dataclass
    class Node:
        following: Node | None

    def look():
        return Node(None)

    look.__annotations__["return"] = Node
    said = r"servers\['sums'\]: look cannot be a tool: name 'Node' is not defined"
    with anyio.fail_after(30), pytest.raises(TypeError, match=said):
        await Broker(servers={"sums": [look]}, opens_sandbox=False).__aenter__()


@pytest.mark.parametrize("config", [None, 5, ["mcp.json"]])
def test_what_is_no_config_is_named(config):
    with pytest.raises(
        TypeError, match=r"a config is a path, data of the form of a file, or a Config, not (None|int|list)"
    ):
        Broker.from_config(config)


@pytest.mark.parametrize("sandbox", [5, "thread", Sandbox])
def test_what_is_no_sandbox_is_named(sandbox):
    with pytest.raises(TypeError, match=r"a sandbox is a sandbox.Sandbox, as Sandbox\(isolation='thread'\), not a "):
        Broker(sandbox=sandbox)


@pytest.mark.parametrize(
    ("seconds", "kind", "said"),
    [
        ("5", TypeError, "startup_seconds is a number of seconds, not a str"),
        (None, TypeError, "not a NoneType"),
        (True, TypeError, "not a bool"),
        (-1, ValueError, "startup_seconds is a number of seconds, 0 for no waiting, not -1"),
        (math.nan, ValueError, "not nan"),
    ],
)
def test_what_is_no_time_to_start_is_named(seconds, kind, said):
    Broker(startup_seconds=math.inf)
    with pytest.raises(kind, match=said):
        Broker(startup_seconds=seconds)


def test_what_is_no_store_is_named():
    with pytest.raises(TypeError, match=r"a store is a Store, as Store\('broker.sqlite3'\), not a str"):
        Broker(store="broker.sqlite3")  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize("name", ["ranker", "sampler"])
def test_what_cannot_be_asked_is_named(name):
    given: dict[str, Any] = {name: 5}
    with pytest.raises(TypeError, match=f"{name} is an `async def` function, not a int"):
        Broker(**given)


class Embedding:
    model: Any = "letters"

    async def embed(self, texts):
        return [[float(len(text))] for text in texts]


class Unnamed(Embedding):
    model = None


@pytest.mark.parametrize(
    ("embedder", "said"),
    [
        (5, "an embedder is an object with `model` and `async def embed(self, texts)`, not a int"),
        (Embedding, "not the class Embedding"),
        (Unnamed(), "the embedder, a Unnamed, names no model: give it a text as `model`"),
    ],
)
def test_what_is_no_embedder_is_named(embedder, said):
    Broker(embedder=Embedding())
    with pytest.raises(TypeError, match=re.escape(said)):
        Broker(embedder=embedder)


def test_what_the_config_names_as_an_embedder_has_to_be_one():
    config = {"mcpServers": {}, "disclosure": {"embedder": "threading:Event"}}
    with pytest.raises(ConfigError, match="threading:Event cannot be used: TypeError: an embedder is an object with"):
        Broker.from_config(config)


def test_a_session_wants_an_open_broker():
    with pytest.raises(RuntimeError, match="the broker is not open: use it inside `async with"):
        Broker(servers={"sums": [add]}).session()


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("search", ("add",)),
        ("get_tool_details", (["sums.add"],)),
        ("read_in_full", (["sums.add"],)),
        ("describe_a_page", (["sums.add"],)),
        ("call_directly", ("sums.add", {"a": 1, "b": 2})),
        ("execute_code", ("1",)),
        ("check_code", ("1",)),
        ("dispatch", ("search_tools", {"query": "add"})),
        ("resume", ("run_1",)),
        ("repeated", ("run_1",)),
        ("wait_for", ("run_1",)),
    ],
)
async def test_a_session_of_a_broker_that_was_closed_says_so_whatever_it_is_asked(method, given):
    async with Broker(servers={"sums": [add]}, opens_sandbox=False) as broker:
        session = broker.session()
        await session.get_tool_details(["sums.add"])
    with pytest.raises(RuntimeError, match="the broker is not open"):
        await getattr(session, method)(*given)


async def test_a_broker_is_opened_once_at_a_time():
    broker = Broker(servers={"sums": [add]}, opens_sandbox=False)
    with anyio.fail_after(30):
        async with broker:
            with pytest.raises(RuntimeError, match="the broker is open already"):
                await broker.__aenter__()
            assert broker.catalog.find("sums.add")
        async with broker:
            assert broker.catalog.find("sums.add")


async def test_a_broker_is_opened_again_on_asyncio_or_trio_as_the_first_time(anyio_backend_name):
    broker = Broker(servers={"sums": [add]})

    async def use():
        with anyio.fail_after(60):
            async with broker:
                session = broker.session(grants=["sums.*"])
                script = "from tools import sums\nawait sums.add(a=1, b=2)"
                return (await session.execute_code(script, describe_references=True)).value

    def again(backend):
        return anyio.to_thread.run_sync(functools.partial(anyio.run, use, backend=backend))

    assert await use() == 3
    with pytest.raises(RuntimeError, match="the broker was open before on the other event loop of asyncio and trio"):
        await again("trio" if anyio_backend_name == "asyncio" else "asyncio")
    assert await again(anyio_backend_name) == 3


async def test_a_broker_is_used_on_its_own_event_loop(anyio_backend_name):
    async def elsewhere(session):
        with anyio.fail_after(10), pytest.raises(RuntimeError, match="the broker is open on another event loop"):
            await session.execute_code("1")

    async with Broker(opens_sandbox=False) as broker:
        session = await anyio.to_thread.run_sync(broker.session)
        await anyio.to_thread.run_sync(functools.partial(anyio.run, elsewhere, session, backend=anyio_backend_name))
        assert (await session.execute_code("1")).value == 1


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("need_servers", ()),
        ("read_tool", ("sums.add",)),
        ("wake_category", ("sums",)),
        ("wait_until_settled", ()),
    ],
)
async def test_a_broker_waits_for_its_servers_on_its_own_event_loop(anyio_backend_name, method, given):
    async def elsewhere(broker):
        with anyio.fail_after(10), pytest.raises(RuntimeError, match="the broker is open on another event loop"):
            await getattr(broker, method)(*given)

    async with Broker(servers={"sums": [add]}, opens_sandbox=False) as broker:
        await anyio.to_thread.run_sync(functools.partial(anyio.run, elsewhere, broker, backend=anyio_backend_name))


ENTERED = "stop was entered before, by you or for another run: pass a new anyio.CancelScope() to each run"


async def test_a_scope_that_has_stopped_a_run_stops_no_other():
    stop = anyio.CancelScope()
    async with Broker() as broker:
        session = broker.session()
        with anyio.fail_after(30):
            ended = await session.execute_code(
                "print(1)\nwhile True: pass", stop=stop, on_output=lambda *_: stop.cancel()
            )
            with pytest.raises(RuntimeError, match=re.escape(ENTERED)):
                await session.execute_code("1", stop=stop)
    assert ended.outcome == "stopped"


async def test_a_scope_that_is_entered_stops_no_run_and_none_is_begun_with_it(tmp_path):
    with Store(tmp_path / "broker.sqlite3") as store, anyio.fail_after(60):
        async with Broker(servers={"sums": [add]}, store=store) as broker:
            with anyio.CancelScope() as stop, pytest.raises(RuntimeError, match=re.escape(ENTERED)):
                await broker.session().execute_code("1", stop=stop)
            assert broker.recordings().list() == []
            session = broker.session(answerer=QuestionBox())
            with anyio.CancelScope() as stop, pytest.raises(RuntimeError, match=re.escape(ENTERED)):
                await session.execute_code("1", stop=stop, park=True)
            assert broker.recordings().list() == []
            assert (await session.execute_code("1", stop=anyio.CancelScope())).value == 1


async def test_a_scope_that_is_entered_leaves_a_run_as_it_is_that_was_to_go_on(tmp_path):
    with Store(tmp_path / "broker.sqlite3") as store, anyio.fail_after(60):
        async with Broker(servers={"sums": [add]}, store=store) as broker:
            script = "from tools import sums\nawait sums.add(a=1, b=2)"
            parked = await broker.session(parks=True).execute_code(script, describe_references=True)
            before = broker.recordings().find(parked.run_id), list(broker.recordings().lines(parked.run_id))
            session = broker.session(grants=["sums.add"])
            with anyio.CancelScope() as stop, pytest.raises(RuntimeError, match=re.escape(ENTERED)):
                await session.resume(parked.run_id, stop=stop)
            assert before[0].state == "parked"
            assert (broker.recordings().find(parked.run_id), list(broker.recordings().lines(parked.run_id))) == before
            assert (await session.resume(parked.run_id, stop=anyio.CancelScope())).value == 3


async def test_a_scope_stops_the_run_that_has_it_and_no_other_begins_with_it(tmp_path):
    stop, started, ended = anyio.CancelScope(), anyio.Event(), []
    with Store(tmp_path / "broker.sqlite3") as store, anyio.fail_after(60):
        async with Broker(store=store) as broker, anyio.create_task_group() as tasks:
            session = broker.session()

            async def sleep():
                script = "import asyncio\nprint(1)\nawait asyncio.sleep(1_000)"
                ended.append(await session.execute_code(script, stop=stop, on_output=lambda *_: started.set()))

            tasks.start_soon(sleep)
            await started.wait()
            with pytest.raises(RuntimeError, match=re.escape(ENTERED)):
                await session.execute_code("2", stop=stop)
            stop.cancel()
        [entry] = broker.recordings().list()
    assert [(one.outcome, one.run_id) for one in ended] == [("stopped", entry.run_id)]


GIVEN: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "one text": ({"grants": "sums.*"}, TypeError, "grants are several: write ['sums.*']"),
    "one grant": ({"grants": Grant("sums.*")}, TypeError, "grants are several, not one Grant: write grants=[…]"),
    "a number": ({"grants": [1]}, TypeError, "a grant is a Grant, or a text like 'git.*', not a int"),
    "a name alone": ({"grants": ["sums"]}, PatternError, "write 'server.tool', or 'sums.*' for a whole server"),
    "a grant for one run": (
        {"grants": [Grant("sums.*", scope="run")]},
        PatternError,
        "sums.* (this run): only an answer to a question can be for one run; leave its scope out",
    ),
    "no model": ({"extractor": "gpt"}, TypeError, "extractor is an `async def` function, not a str"),
    "nobody": ({"principal": None}, TypeError, "principal is text, not a NoneType"),
    "a numbered session": ({"name": 5}, TypeError, "name is text, not a int"),
    "a class": ({"answerer": QuestionBox}, TypeError, "an object, not the class QuestionBox: write QuestionBox()"),
    "a callback": ({"answerer": allow}, TypeError, "an object with `async def answer(self, question)`, not a function"),
}


@pytest.mark.parametrize("case", GIVEN)
async def test_what_a_session_cannot_be_given_is_named(case):
    given, kind, said = GIVEN[case]
    async with Broker(opens_sandbox=False) as broker:
        with pytest.raises(kind) as caught:
            broker.session(**given)
    assert said in str(caught.value)


@pytest.mark.parametrize("mode", [None, "metadata", "off"])
async def test_a_session_parks_no_run_that_is_not_recorded_with_its_content(tmp_path, mode):
    config = Config() if mode is None else Config.of_data({"recordings": {"mode": mode}})
    with Store(tmp_path / "broker.sqlite3") as store:
        async with Broker(config, opens_sandbox=False, store=None if mode is None else store) as broker:
            with pytest.raises(ValueError, match=r"parks=True needs runs that .*: pass Broker\(store=…\), and leave "):
                broker.session(parks=True)


@pytest.mark.parametrize(
    ("script", "limits", "kind", "said"),
    [
        (Path("script.py"), None, TypeError, "the script must be text, not PosixPath"),
        (b"1", None, TypeError, "the script must be text, not bytes"),
        ("#" * 2_097_153, None, ValueError, "the script has 2097153 characters, and 2097152 are allowed"),
        ("1", {"wall_seconds": 5}, TypeError, r"limits are a sandbox.Limits, as Limits\(wall_seconds=5\), not a dict"),
    ],
)
async def test_what_a_run_cannot_be_given_is_named(script, limits, kind, said):
    async with Broker(opens_sandbox=False) as broker:
        with pytest.raises(kind, match=said):
            await broker.session().execute_code(script, limits=limits)


async def later(*_: object) -> None: ...


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"on_output": later}, "on_output is a plain function, called on the event loop: no `async def`"),
        ({"on_call": later}, "on_call is a plain function"),
        ({"on_call": "print"}, "on_call is a plain function"),
        ({"known_answers": later}, "known_answers is a plain function"),
        ({"extractor": 5}, "extractor is an `async def` function, not a int"),
        ({"filename": None}, "filename is text, not a NoneType"),
        ({"stop": anyio.Event}, "stop is an anyio.CancelScope that is not entered, not a type"),
    ],
)
async def test_what_a_run_cannot_be_watched_with_is_named(given, said):
    async with Broker(opens_sandbox=False) as broker:
        with pytest.raises(TypeError, match=said):
            await broker.session().execute_code("1", **given)


async def test_what_no_call_can_be_answered_by_is_named():
    known: Any = lambda _call: 5  # noqa: E731  # what a program passes
    async with Broker(servers={"sums": [add]}) as broker:
        with pytest.raises(TypeError, match=r"by a sandbox\.Returned or Failed, as Returned\(5\), not by a int"):
            await broker.session().execute_code(
                "await sums.add(a=1, b=2)", describe_references=True, known_answers=known
            )


USES: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "search for a number": ("search", (5,), "a search is words, or a broker.SearchRequest, not a int"),
    "search for nothing": ("search", (None,), "not a NoneType"),
    "search by a dict": ("search", ({"query": "add"},), "not a dict"),
    "fetch a number": ("get_tool_details", (5,), "tools are named by texts, as ['git.git_log'], not by a int"),
    "fetch numbers": ("get_tool_details", (["sums.add", 5],), "not by a int"),
    "read a number": ("read_in_full", (5,), "not by a int"),
    "call a number": ("call_directly", (5, {}), "name is text, not a int"),
    "call with nothing": (
        "call_directly",
        ("sums.add", None),
        "the arguments of a call are a dict, as {'repo_path': '.'}, not a NoneType",
    ),
    "call with text": ("call_directly", ("sums.add", "{}"), "not a str"),
    "revoke a grant": ("revoke", (Grant("*"),), "grant_id is text, not a Grant"),
    "wait for a number": ("wait_for", (5,), "run_id is text, not a int"),
    "wait for a result": ("repeated", (Grant("*"),), "run_id is text, not a Grant"),
    "ask whether a name is described": (
        "is_described",
        ("sums.add",),
        "a tool is an entry of the catalog, as broker.catalog.lookup('git.git_log'), not a str",
    ),
    "tools that a list found": (
        "found",
        (["sums.add"],),
        "a page is what `await session.search(...)` returns, not a list",
    ),
    "stubs of a number": ("describe_a_page", (5,), "not by a int"),
    "read from a number on": ("read_in_full", ("sums.add", 5), "cursor is text, not a int"),
    "dispatch a number": ("dispatch", (5, {}), "name is text, not a int"),
}


@pytest.mark.parametrize("case", USES)
async def test_what_a_session_cannot_be_asked_is_named(case):
    method, given, said = USES[case]
    async with Broker(servers={"sums": [add]}, opens_sandbox=False) as broker:
        with pytest.raises(TypeError) as caught:  # noqa: PT012  # not all of them are coroutines
            called = getattr(broker.session(), method)(*given)
            await called
    assert said in str(caught.value)


async def test_a_number_is_told_of_no_progress():
    told: Any = 5
    async with Broker(servers={"sums": [add]}, opens_sandbox=False) as broker:
        with pytest.raises(TypeError, match="on_progress is an `async def` function, not a int"):
            await broker.session().call_directly("sums.add", {}, on_progress=told)


@pytest.mark.parametrize(("field", "names"), [("mode", "'auto', .*, 'hybrid'"), ("detail", "'name', 'brief', 'full'")])
def test_a_search_is_of_a_kind_that_there_is(field, names):
    given: dict[str, Any] = {field: "semantic"}
    with pytest.raises(ValueError, match=f"{field} is one of {names}, not 'semantic'"):
        SearchRequest(query="add", **given)


@pytest.mark.parametrize(
    ("field", "given", "said"),
    [
        ("query", None, "in a search, query is text, not a NoneType"),
        ("cursor", 5, "in a search, cursor is text, not a int"),
        ("filters", {"servers": ["git"]}, "in a search, filters is Filters, not a dict"),
    ],
)
def test_a_search_has_fields_of_their_kinds(field, given, said):
    fields: dict[str, Any] = {"query": "add", field: given}
    with pytest.raises(TypeError, match=said):
        SearchRequest(**fields)


def test_one_server_of_a_search_may_be_a_text():
    assert SearchRequest(query="", filters=Filters(servers="git")).filters == Filters(servers=("git",))


def test_a_search_takes_names_for_what_they_stand_for():
    request = SearchRequest(query="add", mode="regex", detail="full")  # type: ignore[arg-type]  # names of them
    assert (request.mode, request.detail) == (Mode.REGEX, Detail.FULL)
    assert request.detail is Detail.FULL


async def test_one_name_is_as_good_as_a_list_of_one():
    async with Broker(servers={"sums": [add]}, opens_sandbox=False) as broker:
        assert (await broker.session().get_tool_details("sums.add")).described == ("sums.add",)
        assert [item["name"] for item in (await broker.session().read_in_full("sums.add")).items] == ["sums.add"]


async def wait(*_: object) -> None: ...


OBJECTS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a grant of a number": (Grant, {"pattern": 5}, "a pattern of tools is text, as 'git.*', not a int"),
    "a denial of a number": (Denial, {"pattern": 5}, "a pattern of tools is text"),
    "a grant for text": (Grant, {"pattern": "*", "calls": "3"}, "the calls of a grant are a whole number, not a str"),
    "a grant until text": (Grant, {"pattern": "*", "expires_at": "2030"}, "the expiry of a grant is a datetime"),
    "a grant of a numbered definition": (
        Grant,
        {"pattern": "*", "digest": 5},
        "the digest of a grant is text, not a int",
    ),
    "a grant after text": (
        Grant,
        {"pattern": "*", "after": "private"},
        "as after=frozenset({'private'}), not 'private'",
    ),
    "a grant after a list": (Grant, {"pattern": "*", "after": ["private"]}, "as after=frozenset({'private'}), not ["),
    "a denial with a dict": (Denial, {"pattern": "*", "note": {}}, "the note of a denial is text, not a dict"),
    "a box of a number": (QuestionBox, {"name": 5}, "name is text, not a int"),
    "a box that tells nobody": (QuestionBox, {"on_open": 5}, "on_open is a plain function"),
    "a box that waits": (QuestionBox, {"on_form": wait}, "on_form is a plain function"),
    "a server of a number": (BrokerServer, {"broker": 5}, "takes a Broker and ServeSettings, not a int"),
    "a server set wrongly": (BrokerServer, {"broker": Broker(), "settings": {}}, "ServeSettings, not a dict"),
    "a server that waits": (
        BrokerServer,
        {"broker": Broker(), "make_session": wait},
        "make_session is a plain function",
    ),
    "numbers compared": (compare_recordings, {"first": 1, "second": 2}, "is what broker.recordings().get(run_id)"),
    "a numbered principal": (Broker().recordings, {"principal": 5}, "principal is text, not a int"),
}


@pytest.mark.parametrize("case", OBJECTS)
def test_what_cannot_be_made_is_named(case):
    make, given, said = OBJECTS[case]
    with pytest.raises(TypeError) as caught:
        make(**given)
    assert said in str(caught.value)


@pytest.mark.parametrize("states", [5, True, "parked", ["lost"], [["parked"]]])
def test_states_of_runs_are_some_of_them(states):
    with pytest.raises(ValueError, match="states are a collection of 'running', "):
        Broker().recordings().list(states=states)


@pytest.mark.parametrize("method", ["need_servers", "wait_until_settled"])
async def test_a_time_to_wait_for_servers_is_one(method):
    async with Broker(opens_sandbox=False) as broker:
        with pytest.raises(TypeError, match="timeout_seconds is a number of seconds, not a str"):
            await getattr(broker, method)(timeout_seconds="5")


@pytest.mark.parametrize("method", ["need_servers", "rest_lazy_servers"])
@pytest.mark.parametrize("names", [5.0, [5]])
async def test_servers_are_named_by_texts(method, names):
    async with Broker(opens_sandbox=False) as broker:
        with pytest.raises(TypeError, match=r"servers are named by texts, as \['git'\], not by a (float|int)"):
            await getattr(broker, method)(names)


@pytest.mark.parametrize("method", ["need_servers", "wait_until_settled"])
async def test_servers_are_waited_for_while_the_broker_is_open(method):
    broker = Broker(opens_sandbox=False)
    with pytest.raises(RuntimeError, match="the broker is not open"):
        await getattr(broker, method)()
    async with broker:
        assert await getattr(broker, method)()
    with pytest.raises(RuntimeError, match="the broker is not open"):
        await getattr(broker, method)()


@pytest.mark.parametrize(
    ("given", "said"),
    [(("r", "5"), "within_seconds is a number of seconds, not a str"), ((5,), "request is text, not a int")],
)
def test_what_a_repeated_request_is_asked_for_with_is_named(given, said):
    with pytest.raises(TypeError, match=said):
        Broker().serving.requested_runs(*given)


@pytest.mark.parametrize("limit", ["all", -1, True, 2.0])
def test_a_number_of_runs_is_a_number(limit):
    with pytest.raises(ValueError, match=f"limit is a whole number from 0, not {limit!r}"):
        Broker().recordings().list(limit=limit)


@pytest.mark.parametrize("kind", [Grant, Denial])
def test_tests_on_arguments_are_a_predicate(kind):
    with pytest.raises(TypeError, match=r"as Predicate.parse\(\{'/a': \{'equals': 1\}\}\)"):
        kind("sums.add", arguments={"/a": {"equals": 1}})


def test_tests_as_json_are_parsed():
    tests: Any = {"/n": {"max": 1}}
    with pytest.raises(TypeError, match=r"tests as JSON are read by Predicate\.parse\(\{'/n': \{'max': 1\}\}\)"):
        Predicate(tests)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("yes",), "a reply to a form is one of accept, decline, cancel, not 'yes'"),
        (("accept", "Anna"), "the content of a reply is a dict of fields, as {'name': 'Anna'}, not a str"),
    ],
)
def test_a_reply_to_a_form_says_what_is_wrong_with_it(given, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        FormReply(*given)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"run": 5}, TypeError, "run is text, not a int"),
        ({"unknown": "again"}, ValueError, "unknown is one of 'fail', 'ask', 'repeat', not 'again'"),
        ({"ask_unknown": True}, TypeError, "ask_unknown is an `async def` function, not a bool"),
        ({"extractor": "gpt"}, TypeError, "extractor is an `async def` function, not a str"),
    ],
)
async def test_what_a_run_cannot_be_resumed_with_is_named(given, kind, said):
    async with Broker(opens_sandbox=False) as broker:
        with pytest.raises(kind, match=said):
            await broker.session().resume(**{"run": "run_1", **given})
