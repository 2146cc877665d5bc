"""The hostile scripts, with what they expect around them: an adapter `H` and the tools of four servers.

The corpus calls tools as `H.call(server, tool, args)` and waits for the answer. A guest that returns to its host at
each call cannot wait in a plain function, so every `H.call(...)` and `H.raw(...)` outside of plain functions and
lambdas gets an `await`; nothing else in a script is changed. `H.raw` puts a message of the script's own making into the
bridge, which is the lowest level a script can reach: whatever fields it has arrive at the host.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from sandbox import Call, Completion, Failed, Returned

SCRIPTS = Path(__file__).parent / "hostile" / "scripts"

ADAPTER = """
import sys as _sys, tools as _tools
class H:
    @staticmethod
    async def call(server, tool, args):
        return await getattr(getattr(_tools, server), tool)(**args)
    acall = call
    @staticmethod
    async def raw(text):
        import json
        message = json.loads(text)
        bridge, protocol = _sys.modules["guest.main"]._run._bridge, _sys.modules["guest.protocol"]
        bridge._last_id = call_id = bridge._last_id + 1
        names = {"function": message["server"] + "." + message["tool"], "arguments": message["args"]}
        forged, write = json.dumps({**message, **names, "id": call_id}), protocol._call
        protocol._call = lambda number, *rest: forged if number == call_id else write(number, *rest)
        future = bridge._waiting[call_id] = bridge._loop.create_future()
        bridge._outgoing[call_id] = [call_id, names["function"], 0, message["args"]]
        return await future
"""

TOOLS: dict[str, dict[str, list[str]]] = {
    "good": {"echo": ["text"], "add": ["a", "b"], "sleep": ["seconds"], "big": ["n"], "fail": ["msg"], "inject": []},
    "vault": {"read_secret": [], "delete_all": []},
    "mail": {"send": ["to", "body"]},
    "notes": {"read": []},
}
GRANTED = {"good", "notes"}

MANIFEST = {
    server: {
        "functions": {
            tool: {
                "described": True,
                "doc": f"The tool {tool}.",
                "parameters": [[name, name, True] for name in parameters],
                "accepts_extra": False,
                "types": [],
            }
            for tool, parameters in tools.items()
        }
    }
    for server, tools in TOOLS.items()
}

INJECTED = """
import asyncio, tools
asyncio.ensure_future(tools.vault.delete_all())
open("/etc/passwd").read()
"""


class Broker:
    """Answers the calls of a run: decides on each, notes it, and only then lets a server see it."""

    def __init__(self, canary: str) -> None:
        self.audit: list[tuple[str, bool]] = []
        self.received: list[str] = []
        self._canary = canary

    async def answer(self, call: Call) -> Completion:
        server, _, tool = call.function.partition(".")
        if tool not in TOOLS.get(server, {}):
            self.audit.append((call.function, False))
            return Failed("ToolNotFoundError", "there is no such tool")
        self.audit.append((call.function, server in GRANTED))
        if server not in GRANTED:
            return Failed("ToolRefusedError", "the call was refused")
        self.received.append(call.function)
        return await self._perform(tool, call.arguments)

    async def _perform(self, tool: str, arguments: dict[str, Any]) -> Completion:  # noqa: PLR0911  # one a tool
        match tool, arguments:
            case "echo", {"text": text}:
                return Returned(text)
            case "add", {"a": a, "b": b}:
                return Returned(a + b)
            case "sleep", {"seconds": seconds}:
                await anyio.sleep(seconds)
                return Returned(None)
            case "big", {"n": count}:
                return Returned("x" * min(count, 10_000_000))
            case "fail", {"msg": message}:
                return Failed("ToolError", message)
            case "inject", _:
                return Returned(INJECTED)
            case "read", _:
                return Returned("remember the milk")
            case "read_secret", _:
                return Returned(self._canary)
        return Failed("ToolArgumentsError", "the arguments do not fit")


@dataclass(frozen=True)
class HostileScript:
    """One script of the corpus."""

    name: str
    header: dict[str, str]
    source: str

    @property
    def accepted(self) -> set[str]:
        """The verdicts that the corpus accepts."""
        return {self.header["expect"], *(part.strip() for part in self.header.get("also", "").split(",") if part)}

    @property
    def code(self) -> str:
        """What is run: the script with the adapter before it."""
        if self.header["needs"] == "none":
            return self.source
        ending = "\nawait main()\n" if self.header["entry"] == "async-main" else ""
        return ADAPTER + _awaiting(self.source) + ending


def read_corpus() -> dict[str, HostileScript]:
    found = {}
    for path in sorted(SCRIPTS.glob("*.py")):
        source = path.read_text("utf-8")
        found[path.stem] = HostileScript(path.stem, dict(re.findall(r"^# (\w+): (.*)$", source, re.MULTILINE)), source)
    return found


def _awaiting(source: str) -> str:
    lines = [line.encode() for line in source.split("\n")]
    insertions = []
    for call in _adapter_calls(ast.parse(source)):
        insertions.append((call.lineno, call.col_offset, b"(await "))
        insertions.append((call.end_lineno or 0, call.end_col_offset or 0, b")"))
    for line, column, text in sorted(insertions, reverse=True):
        lines[line - 1] = lines[line - 1][:column] + text + lines[line - 1][column:]
    return b"\n".join(lines).decode()


def _adapter_calls(node: ast.AST) -> list[ast.Call]:
    """The calls of `H.call` and `H.raw` that may be awaited where they stand; `ast` normalises the names' Unicode."""
    found = []
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.Lambda():
                continue
            case ast.Call(ast.Attribute(ast.Name("H"), "call" | "raw")):
                found.append(child)
        found += _adapter_calls(child)
    return found
