"""How much memory of `codemode serve --http` a thousand idle sessions take, each kind in a server of its own.

In the era of 2025-11-25 a session is a connection with a handshake; in the newer one a request begins it, and others
name it.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSIONS = 1_000
WARMING = 100
STUB_SERVER = Path(__file__).parent / "stub_server.py"
CODEMODE = str(Path(sys.executable).with_name("codemode"))
SCRIPT = "from tools import desk\nawait desk.add(a=1, b=1)"
CLIENT = {"name": "benchmark", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


class Era(Protocol):
    """A client of one era, for one session."""

    def __init__(self, http: httpx2.Client, url: str) -> None:
        """Talk to a server."""

    def begin(self) -> None:
        """Begin a session, with as little as there can be."""

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call one of the three tools in it."""


class Handshake:
    """2025-11-25."""

    def __init__(self, http: httpx2.Client, url: str) -> None:
        """Talk to a server."""
        self._http = http
        self._url = url
        self._headers: dict[str, str] = {}
        self._numbers = itertools.count(1)

    def begin(self) -> None:
        """Shake hands."""
        version = "2025-11-25"
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
        answer = self._post({"id": next(self._numbers), "method": "initialize", "params": params})
        self._headers = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"], "MCP-Protocol-Version": version}
        self._post({"method": "notifications/initialized"})

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool."""
        params = {"name": name, "arguments": arguments}
        return _result(self._post({"id": next(self._numbers), "method": "tools/call", "params": params}))

    def _post(self, message: dict[str, Any]) -> httpx2.Response:
        answer = self._http.post(self._url, json={"jsonrpc": "2.0"} | message, headers=ACCEPT | self._headers)
        return answer.raise_for_status()


class Named:
    """2026-07-28."""

    def __init__(self, http: httpx2.Client, url: str) -> None:
        """Talk to a server."""
        self._http = http
        self._url = url
        self._session = "new"

    def begin(self) -> None:
        """Have a session made, by a search."""
        reply = self.call("search_tools", {"query": "add"})
        self._session = re.findall(r'session: "(\w+)"', reply["content"][0]["text"])[0]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool."""
        params = {"name": name, "arguments": arguments | {"session": self._session}, "_meta": META}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return _result(self._http.post(self._url, json=message, headers=ACCEPT | headers).raise_for_status())


ERAS: dict[str, type[Era]] = {"2025-11-25": Handshake, "2026-07-28": Named}


def grown_bytes(era: type[Era], *, uses: bool) -> int:
    """Return by how much a server grows with a thousand sessions that begin, or if `uses`, describe and run besides."""
    with _serving() as (process, url), httpx2.Client(timeout=60) as http:
        for _ in range(WARMING):
            _one(era(http, url), uses=True)
        before = _resident_bytes(process)
        for _ in range(SESSIONS):
            _one(era(http, url), uses=uses)
        return _resident_bytes(process) - before


def _one(session: Era, *, uses: bool) -> None:
    session.begin()
    if uses:
        session.call("get_tool_details", {"tools": ["desk.add"]})
        ran = session.call("execute_code", {"code": SCRIPT})
        if ran["structuredContent"]["value"] != 2:  # noqa: PLR2004  # the sum
            raise RuntimeError(ran)


def _result(answer: httpx2.Response) -> dict[str, Any]:
    """Return what a call gave, sent as JSON or as the last event of a stream."""
    text = answer.text
    if answer.headers["Content-Type"].startswith("text/event-stream"):
        text = re.findall(r"^data: (\{.*)$", text, re.MULTILINE)[-1]
    result: dict[str, Any] = json.loads(text)["result"]
    return result


@contextmanager
def _serving() -> Iterator[tuple[int, str]]:
    """Serve the stub server; yield the broker's process and its URL."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mcp.json"
        servers = {"desk": {"command": sys.executable, "args": [str(STUB_SERVER)]}}
        # All these sessions are those of one caller, who may fetch descriptions 120 times a minute otherwise.
        disclosure = {"fetches_per_minute": 1_000_000}
        config.write_text(json.dumps({"mcpServers": servers, "disclosure": disclosure}))
        arguments = [CODEMODE, "serve", "-c", str(config), "--http", "127.0.0.1:0", "--allow", "desk.*"]
        environment = os.environ | {"XDG_DATA_HOME": folder}
        with subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True) as process:
            try:
                lines = iter(process.stderr.readline, "") if process.stderr is not None else ()
                yield process.pid, next(match for line in lines if (match := re.search(r"http://\S+", line)))[0]
            finally:
                process.kill()


def _resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
