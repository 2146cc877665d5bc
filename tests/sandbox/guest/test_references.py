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


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("from tools import git\ng = git\ng.git_log", [("git", "git_log", 3)]),
        ("import tools.git\ng = tools.git\ng.git_log", [("git", "git_log", 3)]),
        ("import tools as t\nu = t\nu.git.git_log", [("git", "git_log", 3)]),
        ("t = tools\nt.git.git_log", [("git", "git_log", 2)]),
        ("t = tools\ng = t.git\nh = g\nh.git_log", [("git", "git_log", 4)]),
        ("h = g\ng = t.git\nt = tools\nh.git_log", [("git", "git_log", 4)]),
        ("g = h = tools.git\ng.a\nh.b", [("git", "a", 2), ("git", "b", 3)]),
        ("g: object = tools.git\ng.a", [("git", "a", 2)]),
        ("(g := tools.git).a\ng.b", [("git", "a", 1), ("git", "b", 2)]),
        ("def f():\n    g = tools.git\n    g.a\ndef h():\n    g = tools.git\n    g.b", [("git", "a", 3), ("git", "b", 6)]),
        ("fs = tools.git\nfs.a", [("git", None, 1)]),
        ("if x:\n    g = tools.git\nelse:\n    g = tools.fs\ng.a", [("git", None, 2), ("fs", None, 4)]),
        ("g = tools.git if x else None\ng.a", [("git", None, 1)]),
        ("import tools.git\ntools = x\ng = tools.git\ng.a", [("git", None, 1)]),
        ("from tools import git\ngit = x(git)\ng = git\ng.a", [("git", None, 1)]),
        ("g = g\ng.a", []),
        ("a = b\nb = a\na.x", []),
        ("c.g = tools.git\nc.g.a", [("git", None, 1)]),
        ("g, h = tools.git, 1\ng.a", [("git", None, 1)]),
        *(
            (f"g = tools.git\n{binding}\ng.a", [("git", None, 1)])
            for binding in (
                "g = 1",
                "g += 1",
                "g: int",
                "del g",
                "import g",
                "for g in x: pass",
                "[g for g in x]",
                "with x as g: pass",
                "def g(): pass",
                "class g: pass",
                "def f(g): pass",
                "lambda g: 1",
                "try: pass\nexcept E as g: pass",
                "match x:\n    case g: pass",
                "def f():\n    global g",
            )
        ),
    ],
)  # fmt: skip
async def test_a_name_that_only_ever_means_a_server_is_followed(sandbox, script, found):
    with anyio.fail_after(60):
        references = await sandbox.references(script, unimported=["fs"])
    assert list(references) == [Reference(*one) for one in found]


@pytest.mark.parametrize(
    ("script", "bare"),
    [
        ("log()", [("git", "log", 2)]),
        ("log(); log()\nx = diff", [("git", "log", 2), ("git", "diff", 3)]),
        ("def f():\n    return diff\nlog", [("git", "log", 4), ("git", "diff", 3)]),
        ("print(log)", [("git", "print", 2), ("git", "log", 2)]),
        ("from math import *\nlog()", []),
        ("from .own import *\nlog()", []),
        ("from tools import *\nlog()", []),
        ("from tools.fs import *\nlog()", [("fs", "log", 3), ("git", "log", 3)]),
        ("log()\nfrom tools.fs import *", [("git", "log", 2)]),
        ("from math import *\nfrom tools.fs import *\nlog()", [("fs", "log", 4)]),
        ("x.log()\n'log'", [("git", "x", 2)]),
        *(
            (f"{binding}\nlog()", [])
            for binding in (
                "log = 1",
                "log: 1 = 1",
                "for log in (): pass",
                "[log for log in ()]",
                "with 1 as log: pass",
                "def log(): pass",
                "class log: pass",
                "def f(log): pass",
                "lambda log: 1",
                "try: pass\nexcept 1 as log: pass",
                "import log",
                "from math import log",
                "match 1:\n    case log: pass",
                "(log := 1)",
            )
        ),
    ],
)
async def test_bare_names_are_told_that_an_import_of_all_names_may_have_bound(sandbox, script, bare):
    with anyio.fail_after(60):
        references = await sandbox.references(f"from tools.git import *\n{script}")
    told = [one for one in references if one.is_bare]
    assert {(one.namespace, one.function, one.line) for one in told} == set(bare)
    assert [one.namespace for one in told] == [namespace for namespace, _, _ in bare]
    assert [one for one in references if one.namespace == "git" and not one.is_bare] == [Reference("git", "*", 1)]


async def test_a_name_used_above_the_import_of_all_names_is_not_told(sandbox):
    with anyio.fail_after(60):
        assert await sandbox.references("print(1)\nfrom tools.git import *") == (Reference("git", "*", 2),)


async def test_no_more_than_1000_bare_names_of_10_imports_are_told(sandbox):
    imports = "".join(f"from tools.s{number} import *\n" for number in range(12))
    with anyio.fail_after(60):
        few = await sandbox.references(f"{imports}log()")
        many = await sandbox.references(imports + "\n".join(f"n{number}" for number in range(600)))
    assert [one.namespace for one in few if one.is_bare] == [f"s{number}" for number in range(11, 1, -1)]
    told = [one.namespace for one in many if one.is_bare]
    assert (told.count("s11"), told.count("s10"), len(told)) == (600, 400, 1_000)


async def test_a_long_chain_of_names_takes_no_long_time(sandbox):
    chain = "\n".join(f"n{number} = n{number - 1}" for number in range(3_000, 0, -1))
    with anyio.fail_after(60):
        found = await sandbox.references(f"n0 = tools.git\n{chain}\nn3000.log")
    assert found == (Reference("git", "log", 3_002),)


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
