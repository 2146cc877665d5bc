"""Commands that a text tells people to type: as they work where they are typed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from broker.cli.app import app
from broker.cli.next_command import CONFIGURED, ISOLATED, whole
from broker.cli.runs import RunsRequest

CONFIG = Path("my configs/it's.json")
QUOTED = """'my configs/it'"'"'s.json'"""


@pytest.fixture(autouse=True)
def no_store(monkeypatch):
    monkeypatch.delenv("CODEMODE_STORE", raising=False)


def commands(group, before=""):
    """Every command of the app by the words that name it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield before + name, {parameter.name for parameter in command.params}


def given(**more):
    return SimpleNamespace(config=CONFIG, isolation=None, **more)


def test_the_commands_that_take_an_option_are_those_that_have_it():
    every = dict(commands(typer.main.get_command(app)))
    assert {name for name, has in every.items() if "config" in has} == CONFIGURED
    assert {name for name, has in every.items() if "isolation" in has} == ISOLATED


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("`codemode resume run_1` goes on.", f"`codemode resume run_1 --config {QUOTED}` goes on."),
        ("Log in with `codemode mcp login 'a b'`.", f"Log in with `codemode mcp login 'a b' --config {QUOTED}`."),
        ("`codemode tools list` has all names.", f"`codemode tools list --config {QUOTED}` has all names."),
        ("`codemode show last`, `codemode doctor`", f"`codemode show last`, `codemode doctor --config {QUOTED}`"),
        ("`codemode recordings list` has all", "`codemode recordings list` has all"),
        ("`ulimit -v`, codemode resume", "`ulimit -v`, codemode resume"),
    ],
)
def test_a_command_names_the_config_where_it_takes_one(text, made):
    assert whole(text, given()) == made
    assert whole(text, RunsRequest(as_json=False)) == text


def test_a_run_goes_on_where_it_ran():
    request = SimpleNamespace(config=None, isolation="thread")
    assert whole("`codemode resume run_1`", request) == "`codemode resume run_1 --isolation thread`"
    given_already = "`codemode run --isolation process`"
    assert whole(given_already, request) == given_already


def test_a_command_finds_the_store_of_this_one(monkeypatch):
    monkeypatch.setenv("CODEMODE_STORE", "/my store.sqlite3")
    assert whole("`codemode show last`", None) == "`CODEMODE_STORE='/my store.sqlite3' codemode show last`"
