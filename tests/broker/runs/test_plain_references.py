"""What is read off a script's text is what a guest reads in it."""

from __future__ import annotations

from itertools import product

import pytest

from broker.runs.plain_references import MAX_CHARACTERS, plain_references
from sandbox import Raised, Reference, Sandbox

pytestmark = pytest.mark.anyio

TOOLS = {("desk", "add"), ("desk", "rows"), ("git", "log")}
NAMESPACES = {"desk", "git"}


def read(script: str) -> tuple[Reference, ...] | None:
    return plain_references(script, NAMESPACES, lambda namespace, function: (namespace, function) in TOOLS)


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("", []),
        ("print(1)", []),
        ("from tools import desk\nawait desk.add(a=1)", [("desk", "add", 2)]),
        ("from tools import desk, git\n\ngit.log\ngit.log", [("desk", None, 1), ("git", "log", 3)]),
        ("desk.rows(desk.add())", [("desk", "rows", 1), ("desk", "add", 1)]),
        ("def f():\n    from tools import git\n    return git.log().x", [("git", "log", 3)]),
        ("# desk.add", [("desk", "add", 1)]),
        ("desks.add, my_desk.add", []),
    ],
)
def test_plain_names_are_read_off_the_text(script, found):
    assert read(script) == tuple(Reference(*one) for one in found)


@pytest.mark.parametrize(
    "script",
    [
        "import tools",
        "from tools import desk as d",
        "from tools import (desk)",
        "from tools import desk; desk.add()",
        "from tools import desk, nothing",
        "from tools.desk import add",
        "from tools import *",
        "tools.desk.add()",
        "desk = 1",
        "print(desk)",
        "(desk).add()",
        "desk .add()",
        "desk.\\\nadd()",
        "desk.remove()",
        "own.desk.add()",
        "for git in x: git.log",
        "import desk.add",
        "import os, desk.add",
        "import \\\ndesk.add",
        "x = 1; from git.log import *",
        "'desk'",
        "desk.add()" + " " * MAX_CHARACTERS,
    ],
)
def test_anything_else_is_left_to_a_guest(script):
    assert read(script) is None


LINES = (
    "from tools import desk",
    "from tools import desk, git",
    "def f():\n    from tools import git\n    return git.log",
    "await desk.add(a=git.log)",
    "x = desk.rows",
    "x.y = lambda: desk.add",
    "from tools import desk as git",
    "import tools",
    "tools.desk.add()",
    "from tools.git import log",
    "git = desk = 1",
    "for desk in (): pass",
    "def g(git): return git.log",
    "x.desk.add()",
    "desk.unknown()",
    "if x: pass",
)


@pytest.fixture
async def a_sandbox(image):
    async with Sandbox(cache=image.compiled.parent, isolation="thread") as sandbox:
        yield sandbox


async def test_a_guest_reads_the_same(a_sandbox):
    scripts = ["\n".join(lines) for lines in product(LINES, repeat=2)]
    plain = {script: found for script in scripts if (found := read(script)) is not None}
    assert 30 < len(plain) < len(scripts)
    for script, found in plain.items():
        named = {name for name in NAMESPACES if f"{name}." in script}
        guest = await a_sandbox.references(script, unimported=named)
        assert not isinstance(guest, Raised)
        assert set(guest) == set(found), script
