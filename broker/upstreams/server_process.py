"""The processes of stdio servers, started. Loads nothing of the SDK, so that servers start while it is loaded.

Above: upstreams.py, which starts all of them first, and stdio.py, which speaks to one. Below: anyio, input_pipe.py,
output_pipe.py, process_tree.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from broker.upstreams.input_pipe import InputPipe, InputStream
from broker.upstreams.output_pipe import OutputPipe, OutputStream

if TYPE_CHECKING:
    from anyio.abc import Process

    from broker.upstreams.input_pipe import Input
    from broker.upstreams.output_pipe import Output
    from broker.upstreams.server_config import ServerConfig

# What a server is given beside its own `env`: what programs need to start, and nothing that may be a secret.
_INHERITED = (
    (
        "APPDATA",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "USERNAME",
        "USERPROFILE",
    )
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)

_SPARE_FILES = 15
"""How many files this process must be able to open to start a server. The server keeps two; a run takes 13."""

_END_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server that was started.

    Attributes:
        process: The leader of a session, with a pipe to read its stderr from.
        stdin: What it reads.
        stdout: What it writes.
    """

    process: Process
    stdin: Input
    stdout: Output


async def start_process(config: ServerConfig) -> ServerProcess:
    """Start the server of a config.

    Raises:
        OSError: The program cannot be started, or would leave this process too few files for a run.
    """
    if sys.platform == "win32":
        process = await _open(config, subprocess.PIPE, subprocess.PIPE)
        assert process.stdin is not None  # noqa: S101  # it was opened as a pipe
        assert process.stdout is not None  # noqa: S101  # likewise
        return ServerProcess(process, InputStream(process.stdin), OutputStream(process.stdout))
    async with AsyncExitStack() as ours:
        with ExitStack() as theirs:
            their_stdin, writing_end = os.pipe()
            theirs.callback(os.close, their_stdin)
            stdin = InputPipe(writing_end)
            ours.push_async_callback(stdin.aclose)
            reading_end, their_stdout = os.pipe()
            theirs.callback(os.close, their_stdout)
            stdout = OutputPipe(reading_end)
            ours.push_async_callback(stdout.aclose)
            with ExitStack() as spare:
                for _ in range(_SPARE_FILES):
                    spare.callback(os.close, os.dup(their_stdin))
            process = await _open(config, their_stdin, their_stdout)
        ours.pop_all()
    return ServerProcess(process, stdin, stdout)


async def _open(config: ServerConfig, stdin: int, stdout: int) -> Process:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    with anyio.CancelScope(shield=True):  # one that is cancelled kills the process, and not what this has started
        process = await anyio.open_process(
            [config.command or "", *config.args],
            stdin=stdin,
            stdout=stdout,
            env=inherited | config.env,
            cwd=config.cwd,
            start_new_session=True,
        )
    return process  # noqa: RET504  # to mypy, the scope may swallow what is raised


async def end_process(server: ServerProcess) -> None:
    """End a process that nobody came to speak to, with all that it started, and wait a second or two for its end."""
    from broker.upstreams.process_tree import ProcessTree  # noqa: PLC0415  # psutil is not waited for to start servers

    with anyio.CancelScope(shield=True):
        with anyio.move_on_after(_END_SECONDS):
            await ProcessTree(server.process).kill()
        await server.stdin.aclose()
        await server.stdout.aclose()
        with anyio.move_on_after(_END_SECONDS):
            await server.process.aclose()
