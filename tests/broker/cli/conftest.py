"""Runs `codemode` as a process, as a person or a job would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.broker.servers.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fork_server import ForkServer

CODEMODE = str(Path(sys.executable).with_name("codemode"))
TIMEOUT_SECONDS = 120

_READ_AT_START = ("PYTHON", "LANG", "LC_", "TZ")
"""Variables that an interpreter reads when it starts."""


@pytest.fixture
def command():
    """The installed console script."""
    return CODEMODE


@pytest.fixture
def environment(tmp_path, data_home):
    """No config of the user's, no colours; the compiled image stays where it is."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("CODEMODE_", "NO_COLOR"))}
    own = {"XDG_CONFIG_HOME": str(tmp_path / "no-config")}
    return plain | own | {"XDG_DATA_HOME": data_home, "COLUMNS": "120", "TERM": "dumb"}


@pytest.fixture(autouse=True)
def heeded_signals():
    """What a test starts heeds each signal, also where `nohup` or a shell's `&` had this process ignore one."""
    ignored = [number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture
def codemode(environment, tmp_path, fork_server: ForkServer | None):
    """Runs a command; `first` is done in its process before it, `more` are variables of its environment."""

    def run(
        *arguments: str, stdin: str = "", first: Callable[[], object] | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        command, env = [CODEMODE, *arguments], environment | more
        if fork_server is not None and first is None and not any(name.startswith(_READ_AT_START) for name in more):
            return fork_server.run(command, stdin=stdin, env=env, cwd=tmp_path, timeout=TIMEOUT_SECONDS)
        return subprocess.run(  # noqa: S603  # our own command
            command,
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=TIMEOUT_SECONDS,
            env=env,
            cwd=tmp_path,
            check=False,
            preexec_fn=first,
        )

    return run


@pytest.fixture
def write_config(tmp_path):
    def write(servers: dict[str, Any], **sections: Any) -> str:
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": servers, **sections}))
        return str(path)

    return write


@pytest.fixture
def odd():
    """A server that works, and fails as asked."""
    return plain("odd")


@pytest.fixture
def config(write_config, odd):
    return write_config({"odd": odd})
