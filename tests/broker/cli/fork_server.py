"""Commands in processes forked from one that has imported `codemode`, which takes most of what a short command takes.

As a program it is that process. For each command it forks one that waits, which forks the command: so several can run
at the same time, and each ends as it would had a shell started it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from broker import cli

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO

ROOT = Path(__file__).parents[3]
_REQUEST_BYTES = 1024 * 1024


class ForkServer:
    """The process that has imported everything, as tests see it."""

    def __init__(self) -> None:
        """Start it; it imports while the first command waits."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  # this file
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait()

    def run(
        self, command: Sequence[str], *, stdin: str, env: Mapping[str, str], cwd: Path, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as `subprocess.run` does, with all of its output captured.

        Raises:
            subprocess.TimeoutExpired: It took longer than `timeout` seconds, and was killed.
        """
        pipes = [_pipe(mode) for mode in "wrrr"]
        written, stdout, stderr, told = (ours for ours, _ in pipes)
        request = json.dumps({"argv": list(command), "env": dict(env), "cwd": str(cwd)}).encode()
        socket.send_fds(self._socket, [request], [theirs for _, theirs in pipes])
        for _, theirs in pipes:
            os.close(theirs)
        with ThreadPoolExecutor(3) as readers, written, stdout, stderr, told:
            process = int(told.readline())
            reading = [readers.submit(stdout.read), readers.submit(stderr.read), readers.submit(told.read)]
            with contextlib.suppress(BrokenPipeError), written:
                written.write(stdin)
            try:
                out, err, code = [one.result(timeout) for one in reading]
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(command), timeout) from None
        return subprocess.CompletedProcess(list(command), int(code), out, err)


def _pipe(mode: str) -> tuple[IO[str], int]:
    """Return our end of a pipe, which we read or write, and the other."""
    reading, writing = os.pipe()
    ours, theirs = (reading, writing) if mode == "r" else (writing, reading)
    return open(ours, mode, encoding="utf-8"), theirs  # noqa: PTH123  # a descriptor


def become_a_command(server: socket.socket) -> None:
    """Fork for each request; return in the process that is to be the command."""
    for module in pkgutil.walk_packages(cli.__path__, f"{cli.__name__}."):
        importlib.import_module(module.name)
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(server, _REQUEST_BYTES, 4)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            server.close()
            break
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    *standard, told = descriptors
    if (command := os.fork()) != 0:
        for descriptor in standard:
            os.close(descriptor)
        os.write(told, f"{command}\n".encode())
        os.write(told, str(os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])).encode())
        os._exit(0)
    os.close(told)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    given = json.loads(request)
    os.environ.clear()
    os.environ.update(given["env"])
    os.chdir(given["cwd"])
    sys.argv[:] = given["argv"]


if __name__ == "__main__":
    become_a_command(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_path(sys.argv[0], run_name="__main__")
