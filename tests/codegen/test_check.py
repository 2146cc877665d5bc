from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

import codegen
from codegen import Diagnostic, ToolAnnotations, ToolSpec, TypeChecker, generate_stub
from codegen.checking.mistake import nearest
from tests.codegen.script_cases import ScriptCase, broken_scripts, correct_scripts
from tests.codegen.world import stubs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codegen.checking.language_server import Finding


@pytest.fixture(scope="module")
def check():
    """Checks a script in a process that is kept; `test_type_checker.py` has that a new one says the same."""
    with TypeChecker() as checker:
        yield partial(codegen.check, checker=checker)


@pytest.mark.parametrize("case", correct_scripts(), ids=lambda case: case.name)
def test_nothing_is_found_in_a_correct_script(check, case: ScriptCase) -> None:
    assert check(case.script, stubs()) == []


@pytest.mark.parametrize(
    ("script", "unimported", "instead"),
    [
        ("from hub import get_issue", ["hub"], "from tools.hub import get_issue"),
        ("from hub import get_issue, find as f  # both", ["hub"], "from tools.hub import get_issue, find"),
        ("from hub import (\n    get_issue,\n)", ["hub"], "from tools import hub"),
        ("import hub", ["hub"], "from tools import hub"),
        ("import hub", [], None),  # the guest has found a module of that name
        ("import hub\nimport tools\nawait tools.hub.get_issue(repo='a', number=1)", ["hub"], None),
    ],
)
def test_a_server_that_is_imported_as_a_module_is_a_mistake_where_there_is_no_such_module(
    check, script, unimported, instead
):
    found = [(one.message, one.hint) for one in check(script, stubs(), unimported=unimported)]
    said = ("there is no module `hub`", f"write `{instead}` instead")
    assert found == ([] if instead is None else [said])


@pytest.mark.parametrize("case", broken_scripts(), ids=lambda case: case.name)
def test_a_mistake_is_found_where_it_is(check, case: ScriptCase) -> None:
    found = check(case.script, stubs())
    assert any(
        one.line == case.line and one.code == case.code and case.words in f"{one.message} {one.hint}" for one in found
    ), list(map(str, found))


@pytest.mark.parametrize(
    ("script", "is_told"),
    [
        ("Here it is:\nfrom tools import hub\nprint(await hub.get_issue(repo='a', number=1))", False),
        ("from tools import hub\nprint(rows\nawait hub.get_issue(repo='a', number=1)", False),
        ("from tools import hub\ndef f():\n    await hub.read()\nprint(rows)", True),
    ],
    ids=["prose", "an open bracket", "await in a plain function"],
)
def test_undefined_names_are_told_unless_python_cannot_read_on(check, script, is_told):
    codes = {one.code for one in check(script, stubs())}
    assert "invalid-syntax" in codes
    assert ("unresolved-reference" in codes) is is_told


def test_there_are_enough_scripts() -> None:
    assert len(correct_scripts()) >= 150
    assert len(broken_scripts()) >= 150
    assert len({case.name for case in (*correct_scripts(), *broken_scripts())}) >= 300


def test_columns_count_characters_of_the_script(check) -> None:
    script = 'from tools import hub\nx = "日本語😀"; i = await hub.get_issue(repo=x, number=1); print(i["titel"])'
    assert check(script, stubs()) == [
        Diagnostic(
            line=2,
            column=script.splitlines()[1].index('"titel"') + 1,
            code="invalid-typed-dict-key",
            message='GetIssueResult has no key "titel"',
            hint='did you mean "title"?',
        )
    ]


def test_a_name_that_is_not_very_like_another_one_is_told_with_all_of_them() -> None:
    keys = ["timezone", "datetime"]
    assert nearest("timezon", keys, "its keys") == "did you mean `timezone`?"
    assert nearest("time", keys, "its keys") == "did you mean `timezone`? its keys: timezone, datetime"
    assert nearest("when", keys, "its keys") == "its keys: timezone, datetime"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_every_way_that_python_knows(check, end: str) -> None:
    lines = ["from tools import hub", "i = await hub.get_issue(repo='a', number=1)", "print(i['titel'])"]
    [found] = check(end.join(lines), stubs())
    assert (found.line, found.column, found.hint) == (3, 9, 'did you mean "title"?')


def test_at_most_twenty_mistakes_are_told(check) -> None:
    script = "from tools import hub\n" + "await hub.nothing()\n" * 50
    assert len(check(script, stubs())) == 20


def test_a_tool_that_is_only_listed_is_not_checked(check) -> None:
    script = "from tools import hub\nprint((await hub.merge(number=1))['x'])\nawait hub.close()"
    found = check(script, stubs(), listed={"hub": ["merge"]})
    assert [(one.line, one.message) for one in found] == [(3, "there is no tool `close` in tools.hub")]


def test_the_script_is_never_run(check) -> None:
    script = "import os\nos.abort()\nraise SystemExit(1)\n"
    assert check(script, stubs()) == []


@pytest.mark.parametrize(
    "script",
    ["\0", "\ud800", "(" * 5000, "\r\n\r", "\ufeffx = 1", "%time 1", "!ls", "# type: ignore"],
    ids=["nul", "surrogate", "nesting", "newlines", "mark", "magic", "shell", "comment"],
)
def test_strange_text_gives_diagnostics_or_none(check, script: str) -> None:
    assert all(isinstance(one, Diagnostic) for one in check(script, stubs()))


def test_only_what_a_script_names_is_given_to_the_checker() -> None:
    given: dict[str, str] = {}

    class Listening(TypeChecker):
        def findings(self, script: str, package: Mapping[str, str]) -> tuple[Finding, ...]:
            given.update(package)
            return super().findings(script, package)

    script = "from tools import hub\nawait hub.get_issue(repo='a', number=1)"
    assert codegen.check(script, stubs(), listed={"other": ["look"]}, checker=Listening()) == []
    assert given.keys() == {"tools/__init__.pyi", "tools/hub.pyi", "__builtins__.pyi"}
    assert "async def get_issue" in given["tools/hub.pyi"]
    assert "list_issues" not in given["tools/hub.pyi"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("from tools import hubb\n", "there is no server `hubb` in tools (did you mean `hub`?)"),
        ("import tools\nawait tools.weathr.forecast(city='a')\n", "`weathr` in tools (did you mean `weather`?)"),
        ("from tools.files import read_fil\n", "`read_fil` in tools.files (did you mean `read_file`?)"),
        ("from tools.other import lok\n", "`lok` in tools.other (did you mean `look`?)"),
        ("await clock.now()\n", "`clock` is not imported (write `from tools import clock`)"),
        ("await read_graph()\n", "`read_graph` is not imported (write `from tools.memory import read_graph`)"),
    ],
)
def test_what_a_script_misspells_is_found_among_what_it_does_not_name(check, script: str, message: str) -> None:
    [found] = check(script, stubs(), listed={"other": ["look"]})
    assert message in str(found)


@pytest.mark.parametrize(
    "script",
    [
        "from tools import \uff48ub\nprint(await \uff48ub.get_issue(repo='a', number=1))",
        "from tools.hub import *\nprint(await get_issue(repo='a', number=1))",
        "from tools.hub import GetIssueResult\ndef show(issue: GetIssueResult) -> str:\n    return issue['title']",
        "import tools\nfor name in ('hub', 'files'):\n    print(getattr(tools, name).__name__)",
        "import tools.hub as h\ncall = getattr(h, 'get_' + 'issue')\nprint(await call(repo='a', number=1))",
    ],
    ids=["full width", "star", "type alone", "by value", "put together"],
)
def test_a_tool_named_in_any_way_is_there(check, script: str) -> None:
    assert check(script, stubs()) == []


@pytest.mark.parametrize(
    "names",
    ["from tools import hub", "import tools.hub as hub", "hub = tools.hub"],
)
@pytest.mark.parametrize("error", ["ToolError", "tools.ToolError"])
def test_errors_and_tools_itself_need_no_import(check, names: str, error: str) -> None:
    script = f"{names}\ntry:\n    await hub.get_issue(repo='a', number=1)\nexcept {error} as failed:\n    print(failed."
    assert check(f"{script}tool)", stubs()) == []
    [found] = check(f"{script}code)", stubs())
    assert "`ToolError` has no attribute `code`" in found.message


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("await hub.get_issue(repo='a', number=1)", []),
        ("await hub.get_issue(repo='a')", ["No argument provided for required parameter `number`"]),
        ("hub = {'a': 1}\nhub.get('a')", []),
        ("await files.read_file(path='a')", ["`files` is not imported"]),
    ],
)
def test_a_server_that_may_be_named_without_an_import_is_checked(check, script: str, found: list[str]) -> None:
    mistakes = check(script, stubs(), unimported={"hub"})
    assert [mistake.message[: len(said)] for mistake, said in zip(mistakes, found, strict=True)] == found


def test_the_functions_beside_the_tools_can_be_imported_from_there(check) -> None:
    assert check("from tools import read_bytes, display, extract\ndisplay(await read_bytes({}))", stubs()) == []
    named = check("from tools import display\nawait display.show()", stubs(), listed={"display": ["show"]})
    assert named == []


def test_a_function_of_two_servers_is_told_by_its_own_parameters(check) -> None:
    script = "from tools import files, hub\nawait hub.search(q=1)\nawait files.search(q=1)"
    hints = [one.hint for one in check(script, stubs()) if one.code == "unknown-argument"]
    assert hints == ["it takes: query, from_", "it takes: path, pattern, exclude"]


def test_tools_with_names_alike_are_checked_against_their_own_types(check) -> None:
    made = [
        generate_stub(
            ToolSpec("s", name, None, "", {"type": "object", "properties": {}}, schema, ToolAnnotations()),
            namespace="s",
            function=name,
        )
        for name, schema in (
            ("read_it", {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            ("readIt", {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}),
        )
    ]
    assert check('from tools import s\nprint((await s.read_it())["a"], (await s.readIt())["b"])', made) == []


@pytest.mark.parametrize(
    ("read", "found"),
    [("['data']['only_b']", 0), ("['items'][0]['deep']", 0), ("['data']['none']", 1)],
)
def test_a_key_that_one_of_several_objects_may_have_is_no_mistake(check, read: str, found: int) -> None:
    def shape(key: str, item: object) -> dict[str, object]:
        data = {"type": "object", "properties": {key: {"type": "string"}}}
        items = {"type": "array", "items": item}
        return {"type": "object", "properties": {"data": data, "items": items}, "required": ["data", "items"]}

    deep = {"type": "object", "properties": {"deep": {"type": "string"}}}
    schema = {"anyOf": [shape("only_a", {"type": "string"}), shape("only_b", deep)]}
    spec = ToolSpec("s", "look", None, "", {"type": "object", "properties": {}}, schema, ToolAnnotations())
    script = f"from tools import s\nresult = await s.look()\nprint(result{read})"
    assert len(check(script, [generate_stub(spec, namespace="s", function="look")])) == found


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("hub.get_issue(repo='a', numbr=1)", ["get_issue has no parameter `numbr`"]),
        ("hub.get_issue('a', 1)", ["Too many positional arguments"]),
        ("files.write_file('a')", ["No arguments provided for required parameters", "Too many positional arguments"]),
        ("files.write_file(pth='a')", ["No arguments provided for required parameters", "write_file has no parameter"]),
        (
            "hub.get_issue(repo='a', other=1)",
            ["No argument provided for required parameter", "has no parameter `other`"],
        ),
    ],
)
def test_one_mistake_is_told_once(check, call: str, told: list[str]) -> None:
    found = check(f"from tools import files, hub\nawait {call}", stubs())
    assert [one in message.message for one, message in zip(told, found, strict=True)] == [True] * len(told)


def test_a_wrong_word_where_none_is_allowed_too_is_told_the_words(check) -> None:
    schema = {"anyOf": [{"enum": ["open", "closed"]}, {"type": "null"}]}
    spec = ToolSpec("s", "look", None, "", {"type": "object", "properties": {"state": schema}}, None, ToolAnnotations())
    made = [generate_stub(spec, namespace="s", function="look")]
    [found] = check('from tools import s\nawait s.look(state="OPEN")', made)
    assert found.hint == "one of: 'closed', 'open'"
    for given in ("None", "'open'", "'open' if True else None", "' open '.strip()", "None if True else 'closed'"):
        assert check(f"from tools import s\nawait s.look(state={given})", made) == []


def test_a_server_with_the_name_of_a_module_is_told_from_it(check) -> None:
    spec = ToolSpec("time", "now", None, "", {"type": "object", "properties": {}}, None, ToolAnnotations())
    made = [generate_stub(spec, namespace="time", function="now")]
    [found] = check("import time\nfrom tools import time\nprint(time.perf_counter())", made)
    assert "write `from tools import time as time_server` and `import time`" in found.hint
    assert check("import time\nfrom tools import time as t\nprint(time.perf_counter(), await t.now())", made) == []


def test_a_call_within_many_tries_is_found_unless_one_of_them_catches_its_error(check) -> None:
    # Reading every `try` again for each call would take a minute.
    levels, calls = 90, 45
    opened = "".join(f"{' ' * level}try:\n" for level in range(levels)) + f"{' ' * levels}x = 1\n" + "\n" * 50_000
    body = f"from tools import hub\n{opened}" + f"{' ' * levels}hub.nothing()\n" * calls
    closed = [f"{' ' * level}finally: pass\n" for level in range(levels)]
    assert len(check(body + "".join(reversed(closed)), stubs())) == 20
    closed[0] = "# what is missing\nexcept AttributeError: pass\n"
    assert check(body + "".join(reversed(closed)), stubs()) == []


def test_a_long_argument_of_gather_is_not_read_over_and_over(check) -> None:
    # Looking for a list behind each bracket would hold the interpreter for a minute.
    text = "gather(" * 14_000
    assert check(f"import asyncio, tools\nawait asyncio.gather(1, '{text}')", stubs()) == []
    [found] = check(f"import asyncio, tools\nawait asyncio.gather([1], '{text}')", stubs())
    assert found.message == "asyncio.gather takes calls, not a list of them"


def test_a_literal_that_reads_like_a_message_of_the_checker_is_a_literal(check) -> None:
    schema = {"type": "object", "properties": {"place": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
    spec = ToolSpec("s", "look", None, "", schema, None, ToolAnnotations())
    made = [generate_stub(spec, namespace="s", function="look")]
    script = "from tools import s\n{}"
    call = "await s.look(place={{'x': '{}'}})\n"
    text = 'key "a" with declared type `str` on TypedDict `Z`: value of type `str'
    [found] = check(script.format(call.format(text)), made)
    assert found.message.startswith('"x" must be int, not Literal[\'key')
    # Trying every way to take a long one apart would hold the interpreter for a minute.
    parts = 'key "' * 100 + '" with declared type `' * 30 + "` on TypedDict `a`: value of type `" * 20 + "z" * 300
    assert check(script.format(call.format(parts) * 40), made) == []
