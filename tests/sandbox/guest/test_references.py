"""Which tools a script names, found without running it."""

# ruff: noqa: E501  # one case a line

from __future__ import annotations

import anyio
import pytest

from sandbox import Raised, Reference

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("", []),
        ("print(1)", []),
        ("from tools import git\nawait git.git_log(a=1)", [("git", "git_log", 2)]),
        ("from tools import git as g\n\ng.git_log", [("git", "git_log", 3)]),
        ("import tools\ntools.git.git_log", [("git", "git_log", 2)]),
        ("import tools as t\nt.git.git_log", [("git", "git_log", 2)]),
        ("import tools.git\ntools.git.git_log", [("git", "git_log", 2)]),
        ("import tools.git as g\ng.git_log", [("git", "git_log", 2)]),
        ("from tools.git import git_log, git_diff as d", [("git", "git_log", 1), ("git", "git_diff", 1)]),
        ("from tools.git import *", [("git", "*", 1)]),
        ("from tools import git", [("git", None, 1)]),
        ("from tools import git\nx = git.a\ny = git.a\nz = git.b", [("git", "a", 2), ("git", "b", 4)]),
        ("from tools import git, fs\ngit.a", [("fs", None, 1), ("git", "a", 2)]),
        ("git.git_log", []),
        ("from .tools import git\ngit.a", []),
        ("import tools\n@tools.git.a\ndef f():\n    pass\n\nclass C:\n    x = [\n        tools.git.b]", [("git", "a", 2), ("git", "b", 8)]),
        ("def f():\r\n    from tools import (\r\n        git)\r\n    x = 1\r\n    return git.a", [("git", "a", 5)]),
        ("from tools import git as \u0125\nx = 1\n\u0125.a", [("git", "a", 3)]),
        ("x = 1\n\uff54ools.git.a", [("git", "a", 2)]),
        ("exit(1)\nfrom tools import git\ngit.a.b.c", [("git", "a", 3)]),
    ],
)  # fmt: skip
async def test_references_are_found_in_every_way_of_importing(sandbox, script, found):
    with anyio.fail_after(60):
        references = await sandbox.references(script)
    assert list(references) == [Reference(*one) for one in found]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("await git.git_log(a=1)\nfs.read()", [("git", "git_log", 1), ("fs", "read", 2)]),
        ("print(git)", []),
        ("await mcp__git__git_log(a=1)", [("mcp__git__git_log", None, 1)]),
        ("x = f'{await mcp__git__git_log()}'", [("mcp__git__git_log", None, 1)]),
        ("f = mcp__git__git_log", []),
        ("'mcp__git__git_log()'", []),
        ("display(1)", []),
        ("from nowhere import *\nmcp__git__git_log()\ngit.git_log()", [("git", "git_log", 3)]),
        ("def mcp__git__git_log(): pass\nmcp__git__git_log()", []),
        ("from a import mcp__git__git_log\nmcp__git__git_log()", []),
        ("def f():\n    return git.git_log", [("git", "git_log", 2)]),
        ("import git\ngit.git_log", [("git", "git_log", 2)]),
        ("import git as g\ng.git_log", [("git", "git_log", 2)]),
        ("import git.repo\ngit.git_log", [("git", "git_log", 2)]),
        ("from git import git_log as log", [("git", "git_log", 1)]),
        ("from .git import git_log", []),
        ("import json, struct", []),
        ("await call_tool('git.git_log', {})", [("git", "git_log", 1)]),
        ("await call_tool('git_log')", [("git_log", None, 1)]),
        ("await call_tool(name)", [("call_tool", None, 1)]),
        ("x.call_tool('git.git_log')", []),
        ("def call_tool(x): pass\ncall_tool('git.git_log')", []),
        ("import gitpython as git\ngit.git_log", []),
        ("from tools import git\ngit.git_log", [("git", "git_log", 2)]),
        ("from tools import fs as git\ngit.git_log", [("fs", "git_log", 2)]),
        ("x.git.git_log\nf(git=1).git.git_log", []),
        ("git.git_log\ndel git", []),
        ("\uff47it.git_log", [("git", "git_log", 1)]),
        *(
            (f"{binding}\ngit.git_log", [])
            for binding in (
                "git = 1",
                "git: int = 1",
                "a, (git, b) = c",
                "for git in x: pass",
                "[git for git in x]",
                "with x as git: pass",
                "(git := 1)",
                "def git(): pass",
                "async def git(): pass",
                "class git: pass",
                "def f(git): pass",
                "lambda *git: 1",
                "def f[git](): pass",
                "type x[*git] = 1",
                "try: pass\nexcept E as git: pass",
                "match x:\n    case [*git]: pass",
                "match x:\n    case {**git}: pass",
                "match x:\n    case int() as git: pass",
                "def f():\n    global git",
            )
        ),
    ],
)
async def test_a_server_that_is_neither_imported_nor_bound_is_found_where_it_is_looked_for(sandbox, script, found):
    with anyio.fail_after(60):
        references = await sandbox.references(
            script, unimported=["git", "fs", "mcp__git__git_log", "call_tool", "display", "json"]
        )
    assert list(references) == [Reference(*one) for one in found]


async def test_a_script_that_does_not_parse_has_a_syntax_error_instead(sandbox):
    with anyio.fail_after(60):
        found = await sandbox.references("from tools import\n")
    assert isinstance(found, Raised)
    assert found.type == "SyntaxError"
    assert 'File "script.py", line 1' in found.traceback


async def test_nothing_of_the_script_runs(sandbox):
    with anyio.fail_after(60):
        assert await sandbox.references("while True: pass\nfrom tools import a\nprint(a.b)") == (
            Reference("a", "b", 3),
        )
