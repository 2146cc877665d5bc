"""What `help`, `repr` and `inspect` show of tools: their stubs where the manifest has them, else what is known."""

from __future__ import annotations

import pytest

from sandbox import Completed

pytestmark = pytest.mark.anyio

SOURCE = """\
class FindResult(TypedDict):
 names: list[str]
 more: NotRequired[int]

async def find(*,
 text: str, # What to find
 order: Literal['up','down'] = 'up',
 limit: int = ...,
) -> FindResult:
 \"\"\"Finds.\"\"\"
 ..."""
ENTRY = {
    "described": True,
    "doc": "Finds.",
    "parameters": [["text", "text", True], ["order", "order", False], ["limit", "limit", False]],
    "accepts_extra": False,
    "types": ["FindResult"],
}
LISTED = {"described": False, "fetch": 'get_tool_details({"tools": ["desk.send"]})'}


@pytest.fixture
def looked(run):
    """Runs a script about a described and a listed tool, to what it prints."""

    async def looked(script, *, looks=True):
        more = ({"source": SOURCE}, {"doc": "Sends."}) if looks else ({}, {})
        functions = {"find": ENTRY | more[0], "send": LISTED | more[1]}
        manifest = {"desk": {"doc": "The tools of the server desk.", "functions": functions}}
        result = await run(f"import inspect, tools\nfrom tools import desk\n{script}", manifest=manifest)
        assert result.outcome == Completed(None), result.outcome
        return result.stdout

    return looked


@pytest.mark.parametrize("shown", ["help(desk.find)", "print(desk.find.__doc__)", "print(inspect.getdoc(desk.find))"])
async def test_the_help_of_a_described_tool_is_its_stub(looked, shown):
    assert await looked(shown) == f"{SOURCE}\n"


async def test_a_signature_has_the_types_and_defaults_of_the_stub(looked):
    assert await looked("print(inspect.signature(desk.find))") == (
        "(*, text: str, order: Literal['up', 'down'] = 'up', limit: int = ...) -> tools.desk.FindResult\n"
    )
    assert await looked("print(desk.find.__annotations__['text'], desk.FindResult.__required_keys__)") == (
        "<class 'str'> frozenset({'names'})\n"
    )


async def test_the_help_of_a_listed_tool_is_its_line_and_the_fetch_to_make(looked):
    expected = f"<tool desk.send, not described yet: {LISTED['fetch']}>\nSends.\n"
    assert await looked("help(desk.send)") == expected
    assert await looked("print(inspect.signature(desk.send))") == "(**arguments)\n"


async def test_the_help_of_a_server_has_all_its_tools(looked):
    shown = await looked("help(desk)")
    assert shown.startswith("The tools of the server desk.\n\nclass FindResult")
    assert shown.endswith(f"{LISTED['fetch']}>\nSends.\n")
    assert (await looked("help(tools)")).endswith("\ntools.desk: 2 tools\n")


async def test_without_the_stub_names_alone_are_shown(looked):
    shown = await looked("help(desk.find)\nprint(desk, tools, dir(desk), desk.FindResult.__name__)", looks=False)
    assert shown == (
        "<tool desk.find(*, text, order=..., limit=...)>\nFinds.\n"
        "<module 'tools.desk' with find, send> <module 'tools' with desk> ['find', 'send'] FindResult\n"
    )


async def test_help_of_anything_else_is_that_of_python(looked):
    assert "Return the absolute value of the argument." in await looked("help(abs)")
    assert "help(tool) shows a tool's stub" in await looked("help()")
