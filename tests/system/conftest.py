"""Real servers, as examples/servers installs them: `npm ci` and `uv sync` in that folder."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from broker.upstreams.server_config import ServerConfig

SERVERS = Path(__file__).parents[2] / "examples" / "servers"
_NODE = SERVERS / "node_modules" / "@modelcontextprotocol"
_PYTHON = SERVERS / ".venv" / "bin"
PATIENT: dict[str, Any] = {"connect_timeout_seconds": 30}
"""Many tests at the same time make a busy machine."""


@pytest.fixture(scope="session")
def installed() -> None:
    """The servers are there; tests are skipped where they are not installed (in CI that is a failure)."""
    if not (_NODE.is_dir() and (_PYTHON / "mcp-server-git").exists()):
        pytest.skip("the servers of examples/servers are not installed: npm ci and uv sync there")


@pytest.fixture
def node_server(installed):  # noqa: ARG001  # only that it is so
    """Configure one of the npm servers over stdio."""

    def configure(name: str, *arguments: str, **settings) -> ServerConfig:
        program = str(_NODE / name / "dist" / "index.js")
        return ServerConfig(command="node", args=(program, *arguments), **PATIENT | settings)

    return configure


@pytest.fixture
def python_server(installed):  # noqa: ARG001  # only that it is so
    """Configure one of the PyPI servers over stdio."""

    def configure(name: str, *arguments: str, **settings) -> ServerConfig:
        return ServerConfig(command=str(_PYTHON / name), args=arguments, **PATIENT | settings)

    return configure


@pytest.fixture
def everything_url(installed):  # noqa: ARG001  # only that it is so
    """Run server-everything over streamable HTTP on loopback and return its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(_NODE / "server-everything" / "dist" / "index.js")
    process = subprocess.Popen(  # noqa: S603  # a pinned server
        ["node", program, "streamableHttp"],  # noqa: S607  # the node of the machine
        env=os.environ | {"PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        # It says so when it listens; a server that ends instead ends this loop.
        for line in process.stderr:
            if "listening" in line:
                break
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


@pytest.fixture
def repository(tmp_path):
    """A git repository with three commits of two people."""
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch=main")
    for number, person in enumerate(["Ada", "Bob", "Ada"], start=1):
        (folder / f"file{number}.txt").write_text(f"{number}\n")
        _git(folder, "add", ".")
        identity = ["-c", f"user.name={person}", "-c", f"user.email={person.lower()}@example.org"]
        _git(folder, *identity, "commit", "--quiet", "-m", f"Change {number}")
    return folder


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)  # noqa: S603, S607  # fixed arguments
