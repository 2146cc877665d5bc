"""`codemode tools` and `codemode stubs`."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

FAULTY = Path(__file__).parents[1] / "servers" / "faulty.py"


def test_list_prints_names_and_one_line_each(codemode, config):
    finished = codemode("tools", "list", "-c", config)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert [line.split()[0] for line in finished.stdout.splitlines()] == ["odd.die", "odd.echo", "odd.fail"]


def test_text_of_a_server_is_inert(codemode, config):
    for command in (["tools", "list"], ["tools", "show", "odd.echo"], ["stubs", "*"]):
        finished = codemode(*command, "-c", config)
        assert finished.returncode == 0, finished.stderr
        assert not {"\x1b", "\x07", "\u202e"} & set(finished.stdout)


@pytest.mark.parametrize("words", [["ends process"], ["ends", "process"]])
def test_search_finds_by_words_of_the_description(codemode, config, words):
    finished = codemode("tools", "search", *words, "-c", config, "--json")
    assert next(tool["name"] for tool in json.loads(finished.stdout)) == "odd.die"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--server", "od", "--server", "odd"], "error: There is no server 'od'. Did you mean odd?\n"),
        (["--category", "ood"], "error: There is no category 'ood'. Did you mean odd?\n"),
    ],
)
def test_search_below_what_there_is_not_exits_2(codemode, config, option, said):
    finished = codemode("tools", "search", "echo", *option, "-c", config)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == said


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ([], "no tool matches 'xyzzyplugh'"),
        (["--destructive"], "no tool matches 'echo'; some do without --read-only and --destructive"),
    ],
)
def test_a_search_that_finds_nothing_says_why(codemode, config, option, said):
    finished = codemode("tools", "search", "echo" if option else "xyzzyplugh", *option, "-c", config)
    assert (finished.returncode, finished.stdout) == (0, "")
    assert said in finished.stderr


def test_a_cursor_beyond_the_tools_that_are_left_says_so(codemode, write_config, odd):
    search = ["tools", "search", "-n", "1", "-c"]
    finished = codemode(*search, write_config({"odd": odd}))
    cursor = finished.stderr.partition("more with --cursor ")[2].strip()
    again = codemode(*search, write_config({"odd": odd | {"hide_tools": ["*"]}}), "--cursor", cursor)
    assert "search again without --cursor" in again.stderr


def test_show_prints_description_and_stub(codemode, config):
    finished = codemode("tools", "show", "odd.echo", "-c", config)
    assert finished.stdout.startswith("odd.echo\n")
    assert "from tools import odd" in finished.stdout
    assert "async def echo(*, text: str)" in finished.stdout


def test_show_prints_the_definition_as_json_with_the_examples_of_the_server(codemode, write_config):
    described = Path(__file__).parents[1] / "servers" / "described.py"
    config = write_config({"post": {"command": sys.executable, "args": ["-I", str(described)], "mode": "legacy"}})
    shown = json.loads(codemode("tools", "show", "post.send_mail", "--json", "-c", config).stdout)
    assert (shown["function"], shown["examples"]) == ("post.send_mail", [{"to": "a@example.com"}])
    assert shown["input_schema"]["required"] == ["to"]


def test_show_suggests_the_nearest_name(codemode, config):
    finished = codemode("tools", "show", "odd.ecko", "-c", config)
    assert finished.returncode == 2
    assert "odd.echo" in finished.stderr


def test_stubs_are_python_source(codemode, config):
    finished = codemode("stubs", "odd.*", "-c", config)
    functions = [node.name for node in ast.walk(ast.parse(finished.stdout)) if isinstance(node, ast.AsyncFunctionDef)]
    assert functions == ["die", "echo", "fail"]


def test_stubs_of_nothing_exit_2(codemode, config):
    finished = codemode("stubs", "git.*", "-c", config)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "'git.*'" in finished.stderr


def test_servers_are_listed_with_how_they_are(codemode, config):
    finished = codemode("tools", "servers", "-c", config)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout == "odd\tready\t3\t\n"


def test_servers_tell_who_is_asleep_and_what_was_left_out(codemode, write_config, odd):
    faulty = {"command": sys.executable, "args": ["-I", str(FAULTY), "malformed_tools"]}
    config = write_config({"odd": odd | {"lazy": True, "about": "odd things"}, "faulty": faulty})
    finished = codemode("tools", "servers", "-c", config)
    assert (finished.returncode, finished.stderr) == (0, "")
    asleep, malformed = finished.stdout.splitlines()
    assert asleep == "odd\tasleep\t0\todd things"
    assert malformed.startswith("faulty\tready\t3\tleft out tool 1 of a page: it is not a JSON object; ")
    assert "left out the tool 'no_schema': its inputSchema is not a JSON object" in malformed
    connected = codemode("tools", "servers", "-c", config, "--connect").stdout.splitlines()
    assert connected == ["odd\tready (lazy)\t3\todd things", malformed]


def test_a_search_at_detail_full_prints_stubs_as_many_as_are_asked_for(codemode, config):
    finished = codemode("tools", "search", "ends process text", "-c", config, "--detail", "full", "-n", "1")
    assert "async def die(" in finished.stdout
    assert finished.stdout.count("async def ") == 1
    assert "more with --cursor" in finished.stderr


def test_a_store_that_cannot_be_used_stops_scripts_and_not_a_listing(codemode, config, tmp_path):
    store = tmp_path / "store"
    store.write_bytes(b"something else entirely " * 100)
    listed = codemode("tools", "list", "-c", config, CODEMODE_STORE=str(store))
    assert (listed.returncode, "odd.echo" in listed.stdout) == (0, True)
    assert "it is not a database of codemode; move it away" in listed.stderr
    ran = codemode("run", "-", "-c", config, stdin="1", CODEMODE_STORE=str(store))
    assert ran.returncode == 2
    assert "it is not a database of codemode; move it away" in ran.stderr


def test_a_search_that_looked_into_no_lazy_server_says_how_one_does(codemode, write_config, odd):
    config = write_config({"odd": odd | {"lazy": True, "about": "odd things"}})
    finished = codemode("tools", "search", "weather", "-c", config)
    assert 'one as its server, as server="odd", looks into it: odd (odd things).' in finished.stderr
    assert "odd.echo" in codemode("tools", "search", "echo", "-c", config, "--server", "odd").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["tools", "show", "odd.echo"],
        ["stubs", "odd.*"],
        ["tools", "search", "echo", "--server", "odd"],
        ["policy", "test", "--call", "odd.echo"],
    ],
)
def test_whoever_asks_for_a_tool_of_a_disabled_server_is_told_so(codemode, write_config, odd, arguments):
    finished = codemode(*arguments, "-c", write_config({"odd": odd | {"disabled": True}}))
    assert "odd is disabled in the config" in finished.stderr
    assert "odd has no such tool" not in finished.stderr
