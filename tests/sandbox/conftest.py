"""Tools, manifests and answers that the tests of the sandbox use."""

from __future__ import annotations

import shutil
import sys
import textwrap

import anyio
import pytest

from sandbox import Returned


def entry(*parameters: str) -> dict[str, object]:
    """Describes a tool whose parameters are all required; `name?` makes one optional."""
    listed = [[name.rstrip("?"), name.rstrip("?"), not name.endswith("?")] for name in parameters]
    return {"described": True, "doc": "A tool.", "parameters": listed, "accepts_extra": False, "types": []}


@pytest.fixture
def can_repeat():
    """Whether builds of the image repeat on this machine, which needs a compiler."""
    return sys.platform == "linux" and any(map(shutil.which, ("cc", "gcc", "clang")))


@pytest.fixture
def manifest():
    functions = {"echo": entry("text"), "add": entry("a", "b?"), "sleep": entry("seconds"), "fail": entry()}
    listed = {"described": False, "fetch": 'get_tool_details(["good.hidden"])'}
    return {"good": {"doc": "Good tools.", "functions": functions | {"hidden": listed}}}


@pytest.fixture
def run(sandbox, manifest):
    """Runs a script to its result; the bound is far beyond what any of them takes."""

    async def echo(call):
        return Returned(call.arguments.get("text"))

    async def run(script, **options):
        options = {"answer": echo, "manifest": manifest} | options
        with anyio.fail_after(120):
            return await sandbox.run(textwrap.dedent(script), **options)

    return run
