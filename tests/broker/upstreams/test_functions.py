"""Plain functions as tools, and the three tools for model APIs."""

from __future__ import annotations

import functools
import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import anyio
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp.types import CallToolResult, TextContent
from pydantic import (
    AnyUrl,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    HttpUrl,
    PostgresDsn,
    SecretStr,
    computed_field,
)
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from broker import Broker, Form, FormReply, Grant, Question, tool_definitions
from broker.texts import tool_texts
from sandbox import Limits

if TYPE_CHECKING:
    from anthropic.types import ToolParam
    from openai.types.chat import ChatCompletionToolParam

pytestmark = pytest.mark.anyio


class Person(TypedDict):
    name: str
    age: int


def find(name: str, limit: int = 3) -> list[Person]:
    """Finds people."""
    return [Person(name=name, age=number) for number in range(limit)]


async def greet(name: str) -> str:
    """Greets."""
    await anyio.lowlevel.checkpoint()
    return f"hello {name}"


def lend(book: Annotated[str, Field(alias="book-title")], days: Annotated[int, Field(alias="for")] = 7) -> str:
    """Lends a book."""
    return f"{book} for {days} days"


async def renew(book: Annotated[str, Field(alias="book-title")]) -> str:
    """Lends a book again."""
    await anyio.lowlevel.checkpoint()
    return book


async def test_a_parameter_with_an_alias_is_passed_by_it():
    script = (
        "from tools import library\nfirst = await library.lend(book_title='Emma')\n"
        "[first, await library.lend(book_title='Emma', for_=3), await library.renew(book_title='Emma')]"
    )
    with anyio.fail_after(60):
        async with Broker(servers={"library": [lend, renew]}) as broker:
            session = broker.session(grants=[Grant("library.*")])
            await session.get_tool_details(["library.lend", "library.renew"])
            result = await session.execute_code(script)
    assert result.value == ["Emma for 7 days", "Emma for 3 days", "Emma"], result.error


async def test_plain_functions_are_typed_tools():
    script = (
        "from tools import people\nfound = await people.find(name='Ada', limit=1)\n"
        "found[0]['age'], await people.greet(name='Ada')"
    )
    with anyio.fail_after(60):
        async with Broker(servers={"people": [find, greet]}) as broker:
            session = broker.session(grants=[Grant("people.*")])
            details = await session.dispatch("get_tool_details", {"tools": ["people.find", "people.greet"]})
            reply = await session.dispatch("execute_code", {"code": script})
    assert "async def find(*, name: str, limit: int = 3) -> list[FindPerson]:" in details.text
    assert reply.text == '[0, "hello Ada"]\ncalls: people.find ok; people.greet ok'


RETURNED = {
    "list": [{"id": 1}, {"id": 2}],
    "one": [1],
    "none": [],
    "nothing": None,
    "object": {"at": date(2026, 1, 2), "id": (1, 2)},
    "number": 5,
    "text": "5",
    "pictured": ["a picture", Image(data=b"\x89PNG", format="png")],
    "own": CallToolResult(content=[TextContent(type="text", text="own")]),
}


REACHED = {
    "list": [{"id": 1}, {"id": 2}],
    "one": [1],
    "none": [],
    "nothing": None,
    "object": {"at": "2026-01-02", "id": [1, 2]},
    "number": 5,
    "text": "5",
    "own": "own",
    "pictured": [
        {"type": "text", "text": "a picture"},
        {"type": "image", "mime_type": "image/png", "size": 4, "id": "block_1"},
    ],
}


@pytest.mark.parametrize("annotation", [None, {"return": Any}, {"return": dict}, {"return": list}], ids=str)
async def test_a_result_of_which_no_type_is_told_reaches_the_script_as_it_is(annotation):
    def look(kind: str):
        return RETURNED[kind]

    look.__annotations__ |= annotation or {}
    with anyio.fail_after(60):
        async with Broker(servers={"people": [look]}) as broker:
            for kind, value in REACHED.items():
                session = broker.session(grants=[Grant("*")])
                result = await session.execute_code(f"await people.look(kind={kind!r})", describe_references=True)
                assert (result.value, result.error) == (value, None), kind


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Place(NamedTuple):
    row: int
    name: str


class Sum(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int

    @computed_field  # type: ignore[prop-decorator]  # mypy does not know it
    @property
    def doubled(self) -> int:
        return 2 * self.a


class Answer(TypedDict):
    result: int


@dataclass
class Visit:
    at: datetime
    tags: list[str]


class Even:
    number: int

    def __init__(self, number: int) -> None:
        self.number = number

    def __str__(self) -> str:
        return str(self.number)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        del source, handler
        written = core_schema.plain_serializer_function_ser_schema(lambda even: even.number)
        return core_schema.no_info_after_validator_function(
            lambda even: even, core_schema.is_instance_schema(cls), serialization=written
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: object) -> dict[str, Any]:
        del schema, handler
        return {"type": "integer"}


class Odd(Even):
    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: object) -> dict[str, Any]:
        del handler
        raise PydanticInvalidForJsonSchema(f"no words for {schema['type']}")


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
TYPED: dict[str, tuple[Any, Any, str, Any]] = {
    "mapping": (Mapping[str, int], {"a": 1}, "dict[str, int]", {"a": 1}),
    "mapping with a result": (Mapping[str, int], {"result": 1}, "dict[str, int]", {"result": 1}),
    "counter": (Counter[str], Counter("aab"), "dict[str, int]", {"a": 2, "b": 1}),
    "dict by number": (dict[int, str], {1: "a"}, "dict[str, str]", {"1": "a"}),
    "dict or none": (dict[str, int] | None, None, "dict[str, int] | None", None),
    "typed dict with a result": (Answer, {"result": 1}, "LookResult", {"result": 1}),
    "dataclass": (Visit, Visit(NOON, []), "LookResult", {"at": "2026-01-02T12:00:00Z", "tags": []}),
    "model": (Sum, Sum(a=1), "LookResult", {"a": 1, "doubled": 2}),
    "models": (list[Sum], [Sum(a=1)], "list[LookSum]", [{"a": 1, "doubled": 2}]),
    "tuple": (tuple[int, str], (1, "a"), "list[int | str]", [1, "a"]),
    "named tuple": (Place, Place(1, "a"), "list[int | str]", [1, "a"]),
    "set": (set[int], {1}, "list[int]", [1]),
    "iterable": (Iterable[int], lambda: iter([0, 1]), "list[int]", [0, 1]),
    "iterator": (Any, lambda: iter([0, 1]), "Any", [0, 1]),
    "iterator in a list": (list, lambda: [iter([0, 1])], "Any", [[0, 1]]),
    "iterator in an object": (Any, lambda: {"rows": (n for n in (0, 1))}, "Any", {"rows": [0, 1]}),
    "iterator in a mapping": (dict[str, Any], lambda: {"rows": map(str, [0])}, "dict[str, Any]", {"rows": ["0"]}),
    "iterable in a mapping": (dict[str, Iterable[int]], lambda: {"a": iter([0])}, "dict[str, list[int]]", {"a": [0]}),
    "iterables": (list[Iterable[int]], lambda: [iter([0])], "list[list[int]]", [[0]]),
    "enum": (Color, Color.RED, "Literal['red','blue']", "red"),
    "time": (datetime, NOON, "str", "2026-01-02T12:00:00Z"),
    "time with a note": (Annotated[datetime, Field(description="when")], NOON, "str", "2026-01-02T12:00:00Z"),
    "decimal": (Decimal, Decimal("1.50"), "str", "1.50"),
    "link": (HttpUrl, HttpUrl("https://a.example/b"), "str", "https://a.example/b"),
    "any link": (AnyUrl, AnyUrl("shop://a/b"), "str", "shop://a/b"),
    "link or none": (HttpUrl | None, None, "str | None", None),
    "link with a note": (Annotated[AnyUrl, Field(description="where")], AnyUrl("shop://a"), "str", "shop://a"),
    "database": (PostgresDsn, PostgresDsn("postgres://u@db/a"), "str", "postgres://u@db/a"),
    "secret": (SecretStr, SecretStr("hush"), "str", "**********"),
    "size": (ByteSize, ByteSize(1_024), "int", 1_024),
    "class with a schema of its own": (Even, Even(4), "int", 4),
    "class with a schema that JSON has no words for": (Odd, Odd(3), "Any", "3"),
    "bytes": (bytes, b"a", "str", "a"),
    "content": (TextContent, TextContent(type="text", text="a"), "Any", "a"),
    "images": (list[Image], [], "Any", []),
}


def looks(annotation, returned):
    def look():
        return returned() if callable(returned) else returned

    look.__annotations__["return"] = annotation
    return look


async def test_a_result_reaches_the_script_as_the_stub_says():
    cases = {f"people{number}": case for number, case in enumerate(TYPED)}
    servers = {server: [looks(*TYPED[case][:2])] for server, case in cases.items()}
    with anyio.fail_after(60):
        async with Broker(servers=servers) as broker:
            for server, case in cases.items():
                _, _, stub, value = TYPED[case]
                session = broker.session(grants=[Grant("*")])
                details = await session.get_tool_details([f"{server}.look"])
                result = await session.execute_code(f"await {server}.look()")
                assert f"async def look() -> {stub}:" in details.source, case
                assert (result.value, result.error) == (value, None), case


async def test_a_function_that_is_called_with_a_request_around_it_returns_none_as_well():
    def look(ctx: Context):
        del ctx

    look.__annotations__["ctx"] = Context
    with anyio.fail_after(60):
        async with Broker(servers={"people": [look]}) as broker:
            session = broker.session(grants=[Grant("*")])
            result = await session.execute_code("await people.look()", describe_references=True)
    assert (result.value, result.error) == (None, None)


async def test_a_text_that_looks_like_json_reaches_a_function_as_it_is():
    def look(text: str | None = None) -> str:
        return repr(text)

    with anyio.fail_after(60):
        async with Broker(servers={"people": [look]}) as broker:
            for text in ('{"a": 1}', "[1]", "null", "1"):
                session = broker.session(grants=[Grant("*")])
                result = await session.execute_code(f"await people.look(text={text!r})", describe_references=True)
                assert (result.value, result.error) == (repr(text), None), text


async def test_a_function_is_cancelled_with_its_call():
    started, cancelled = anyio.Event(), anyio.Event()

    async def wait() -> None:
        """Waits."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with Broker(servers={"people": [wait]}) as broker, anyio.create_task_group() as tasks:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["people.wait"])
        tasks.start_soon(session.call_directly, "people.wait", {})
        await started.wait()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.fail_after(20):
            await cancelled.wait()


async def test_whoever_embeds_sees_output_and_calls_as_they_come():
    printed, ended = [], []
    async with Broker(servers={"people": [greet]}) as broker:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["people.greet"])
        await session.dispatch(
            "execute_code",
            {"code": "from tools import people\nprint('now')\nawait people.greet(name='Ada')"},
            on_output=lambda stream, text: printed.append((stream, text)),
            on_call=lambda record, done, made: ended.append((record.tool, record.status, done, made)),
        )
    assert printed == [("stdout", "now\n")]
    assert ended == [("greet", "ok", 1, 1)]


@pytest.fixture
def ended():
    """When it is set, `blocked` returns."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def begun():
    """Has an item for each call of `blocked` that has begun."""
    return []


@pytest.fixture
def blocked(monkeypatch, begun, ended: threading.Event):
    """A function that blocks its thread until the test ends, of a server with two threads."""
    monkeypatch.setattr("broker.upstreams.functions.MAX_THREADS", 2)

    def block() -> bool:
        begun.append(None)
        return ended.wait(60)

    return block


async def test_a_run_ends_at_its_limit_while_a_function_blocks_and_others_go_on(blocked):
    def think() -> str:
        return "thought"

    script = "from tools import blocking\nawait blocking.block()"
    with anyio.fail_after(30):
        async with Broker(servers={"blocking": [blocked], "thinking": [think]}) as broker:
            session = broker.session(grants=[Grant("*")])
            ended = [
                await session.execute_code(script, describe_references=True, limits=Limits(wall_seconds=0.3))
                for _ in range(4)
            ]
            after = await session.execute_code("await thinking.think()", describe_references=True)
    assert [(one.stopped and one.stopped.limit, [call.status for call in one.calls]) for one in ended] == [
        ("wall_seconds", ["cancelled"])
    ] * 4
    assert after.value == "thought"


async def test_a_thread_whose_run_has_ended_is_taken_until_its_function_returns(blocked, begun, ended):
    script = "import asyncio\nfrom tools import blocking\nawait asyncio.gather(*(blocking.block() for _ in 'abc'))"
    with anyio.fail_after(30):
        async with Broker(servers={"blocking": [blocked]}) as broker:
            session = broker.session(grants=[Grant("*")])
            for _ in range(3):
                await session.execute_code(script, describe_references=True, limits=Limits(wall_seconds=0.3))
            assert len(begun) <= 2
            ended.set()
            after = await session.execute_code(script, describe_references=True)
    assert after.value == [True] * 3


async def test_a_callback_that_raises_is_no_mistake_of_the_model():
    def on_call(*_: object) -> None:
        raise ValueError("the socket is closed")

    async with Broker(servers={"people": [greet]}) as broker:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["people.greet"])
        with pytest.raises(ValueError, match="the socket is closed"):
            await session.dispatch("execute_code", {"code": "await people.greet(name='Ada')"}, on_call=on_call)


async def test_a_callback_that_raises_at_each_of_many_calls_ends_the_run_with_one_error():
    def on_call(*_: object) -> None:
        raise ValueError("the socket is closed")

    script = "import asyncio\nawait asyncio.gather(*(people.greet(name=name) for name in 'abcde'))"
    with anyio.fail_after(60):
        async with Broker(servers={"people": [greet]}) as broker:
            session = broker.session(grants=[Grant("*")])
            with pytest.raises(ValueError, match="the socket is closed"):
                await session.execute_code(script, describe_references=True, on_call=on_call)


async def test_an_async_function_whose_decorator_is_no_coroutine_is_awaited():
    def counted(function):
        @functools.wraps(function)
        def called(**arguments):
            calls.append(arguments)
            return function(**arguments)

        return called

    @counted
    async def double(n: int) -> int:
        await anyio.lowlevel.checkpoint()
        return 2 * n

    @counted
    async def untyped(n: int):
        await anyio.lowlevel.checkpoint()
        return {"n": n}

    calls: list[Any] = []
    with anyio.fail_after(60):
        async with Broker(servers={"sums": [double, untyped]}) as broker:
            session = broker.session(grants=[Grant("*")])
            script = "[await sums.double(n=4), await sums.untyped(n=5)]"
            result = await session.execute_code(script, describe_references=True)
    assert (result.value, result.error, calls) == ([8, {"n": 5}], None, [{"n": 4}, {"n": 5}])


@pytest.mark.parametrize("arguments", [None, "", "null", {}])
async def test_a_model_that_gives_no_arguments_has_given_none(arguments):
    async with Broker(servers={"people": [greet]}, opens_sandbox=False) as broker:
        session = broker.session()
        assert (await session.dispatch("search_tools", arguments)).text.startswith("people.greet(name")
        reply = await session.dispatch("execute_code", arguments)
    assert (reply.is_error, "'code' is a required property" in reply.text) == (True, True)


async def test_a_model_may_break_lines_inside_the_texts_of_its_arguments():
    async with Broker(servers={"people": [greet]}) as broker:
        reply = await broker.session().dispatch("execute_code", '{"code": "a = 1\na + 1"}')
    assert reply.text == "2"


async def test_a_list_may_have_more_items_than_a_result_may_have_blocks():
    def rows() -> list[dict[str, int]]:
        return [{"n": n} for n in range(1_001)]

    def without_a_type():
        return rows()

    server = MCPServer("store")
    server.add_tool(rows)
    script = "[len(await shop.rows()), len(await shop.without_a_type()), len(await store.rows())]"
    async with Broker(servers={"shop": [rows, without_a_type], "store": server}) as broker:
        session = broker.session(grants=["shop.*", "store.*"])
        result = await session.execute_code(script, describe_references=True)
    assert (result.value, result.error) == ([1_001] * 3, None)


async def test_a_function_asks_a_person_as_the_page_shows():
    page = (Path(__file__).parents[3] / "docs" / "embedding.md").read_text()
    [shown] = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "Resolve(" in block]
    names: dict[str, Any] = {"__name__": "shop"}
    exec(shown, names)  # noqa: S102  # our own page

    class Person:
        async def answer(self, question: Question) -> list[Grant]:
            return [group.grant() for group in question.groups]

        async def fill(self, form: Form) -> FormReply:
            assert form.message == ("Why is order 7 refunded?",)
            return FormReply("accept", {"reason": "it came late"})

    async with Broker(servers={"shop": [names["refund"]]}) as broker:
        session = broker.session(answerer=Person())
        result = await session.execute_code("await shop.refund(order=7)", describe_references=True)
    assert (result.value, result.error) == ("7: it came late", None)


@pytest.fixture(scope="module")
def encoding():
    return import_module("bpe_openai").get_encoding("o200k_base")


NAMES = ["search_tools", "get_tool_details", "execute_code"]


def test_the_definitions_have_the_form_of_each_api():
    assert [tool["name"] for tool in tool_definitions("mcp")] == NAMES
    for_anthropic: list[ToolParam] = tool_definitions("anthropic")
    assert [(tool["name"], tool["input_schema"]["type"]) for tool in for_anthropic] == [
        (name, "object") for name in NAMES
    ]
    assert [(tool["type"], tool["name"]) for tool in tool_definitions("openai")] == [
        ("function", name) for name in NAMES
    ]
    # Annotated as a user's program is: mypy sees whether they fit.
    for_chat: list[ChatCompletionToolParam] = tool_definitions("openai-chat")
    assert [tool["function"]["name"] for tool in for_chat] == NAMES
    with pytest.raises(ValueError, match="there is no format 'grpc'"):
        tool_definitions("grpc")  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize("api", ["mcp", "anthropic", "openai", "openai-chat"])
def test_the_definitions_leave_a_reserve_within_the_500_tokens_promised(api, encoding):
    text = json.dumps(tool_definitions(api), ensure_ascii=False, separators=(",", ":"))
    assert len(encoding.encode(text)) <= 490


@pytest.mark.parametrize("count", [0, 3, 500])
@pytest.mark.parametrize(
    "shape",
    ["server_number_{}", "my-server-{}", "srv_{}_prod", "team-{}-github", "k8s-eu-w1-p7a{}", "x7q{}z2w4k1", "日本語{}"],
)
def test_the_instructions_cost_a_model_less_than_150_tokens(shape, count, encoding):
    text = (
        tool_texts.instructions([shape.format(number) for number in range(count)]) + tool_texts.DESCRIBED_FROM_THE_START
    )
    assert len(encoding.encode(text)) < 150
