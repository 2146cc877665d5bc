"""What a newcomer types first."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest
from typer.main import get_command

from broker.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_without_arguments_the_help_is_shown(codemode):
    finished = codemode()
    assert finished.returncode == 2
    assert "Start here:" in finished.stdout + finished.stderr


def test_the_help_of_run_lists_the_exit_codes(codemode):
    assert "Exit codes: 0 completed, 1 the script raised, 2 wrong usage or config," in codemode("run", "-h").stdout


@pytest.mark.parametrize("command", [["audit"], ["policy", "explain"]])
def test_the_help_of_a_command_that_prints_many_json_values_says_how(codemode, command):
    assert "--json Print one JSON object per line on stdout." in " ".join(codemode(*command, "-h").stdout.split())


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, f"{path} {name}")


@pytest.mark.parametrize(
    ("path", "command"), [one for one in commands(get_command(app), "codemode") if not hasattr(one[1], "commands")]
)
def test_the_help_of_each_command_has_an_example(path, command):
    examples = command.help.partition("Example")[2]
    assert re.search(rf"^  .*\b{path}( |$)", examples, re.MULTILINE), "the README says that there is one"


@pytest.mark.parametrize(("path", "command"), [*commands(get_command(app), "codemode")])
def test_help_is_no_wider_than_a_terminal_except_for_command_lines(path, command):
    text = command.get_help(command.make_context(path, [], resilient_parsing=True, terminal_width=80))
    assert [line for line in text.splitlines() if len(line) > 80 and not line.startswith("    codemode ")] == []


def test_version_is_that_of_the_distribution(codemode):
    assert codemode("--version").stdout == f"codemode {version('codemode-broker')}\n"


@pytest.mark.parametrize("group", ["", "tools", "recordings", "image", "policy", "grants", "audit", "mcp"])
def test_each_command_is_summed_up_in_a_line_that_is_not_cut(codemode, group):
    summaries = codemode(*filter(None, [group]), "--help").stdout.partition("Commands:")[2]
    assert summaries
    assert "..." not in summaries
    assert all(len(line.split()) > 1 for line in summaries.strip().splitlines()), summaries


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["recordings", "show", "last"], "'codemode show' or 'codemode tools show'"),
        (["login", "mail"], "'codemode mcp login'"),
        (["tools", "describe", "git.git_log"], "'codemode tools show'"),
        (["help"], "'codemode --help'"),
        (["ls"], "'codemode tools list'"),
        (["mcp", "list"], "'codemode tools servers'"),
        (["image", "ls"], "'codemode image list'"),
        (["recordings", "remove", "last"], "'codemode recordings rm'"),
        (["grants", "delete"], "'codemode grants revoke'"),
        (["tols"], "'tools'"),
    ],
)
def test_a_command_that_is_elsewhere_or_called_otherwise_is_named(codemode, typed, meant):
    finished = codemode(*typed)
    assert finished.returncode == 2
    assert f"Did you mean {meant}?" in finished.stderr


@pytest.mark.parametrize(
    ("typed", "where"),
    [
        (["--config", "mcp.json", "run", "script.py"], "codemode run ... --config"),
        (["tools", "-c", "mcp.json", "list"], "codemode tools list ... -c"),
    ],
)
def test_an_option_before_its_command_is_told_where_it_goes(codemode, typed, where):
    finished = codemode(*typed)
    assert finished.returncode == 2
    assert f"It goes behind the command: '{where}'" in " ".join(finished.stderr.split())


def test_options_of_a_group_go_before_its_commands(codemode):
    assert "no such option" not in codemode("audit", "--verify").stderr.lower()


@pytest.mark.parametrize(
    ("arguments", "variables", "is_loaded"),
    [
        (["--help"], {}, False),
        (["tools", "search", "--help"], {}, False),
        ([], {"_CODEMODE_COMPLETE": "complete_bash", "COMP_WORDS": "codemode to", "COMP_CWORD": "1"}, False),
        (["policy", "schema"], {}, True),
    ],
)
def test_help_and_completion_load_neither_the_sandbox_nor_the_sdk(arguments, variables, is_loaded, environment):
    program = (
        "import sys\n"
        "sys.argv[0] = 'codemode'\n"
        "from broker.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'codegen', 'mcp', 'sandbox', 'structlog', 'wasmtime'}\n"
        "sys.exit(int(not heavy.isdisjoint(sys.modules)))\n"
    )
    command = [sys.executable, "-c", program, *arguments]
    finished = subprocess.run(command, env=environment | variables, stdout=subprocess.PIPE, check=False)  # noqa: S603  # our own
    assert finished.stdout
    assert bool(finished.returncode) == is_loaded
