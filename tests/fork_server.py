"""Programs in processes forked from one that has imported the broker, which takes most of what a short program takes.

`python -m tests.fork_server DESCRIPTOR` is that process. For each program it forks one that waits, which forks the
program: so several can run at the same time, and each ends as it would had a shell started it. `fork_server.py SOCKET
PROGRAM ARGUMENT…` is `python PROGRAM ARGUMENT…` for others who start programs: it has to start fast.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO

ROOT = Path(__file__).parents[1]
IMPORTED_AT_FIRST_USE = ("broker.upstreams.login", "datamodel_code_generator.parser.jsonschema", "httpcore2", "trio")
_BYTES = 64 * 1024


class ForkServer:
    """The process that has imported everything, as tests see it."""

    def __init__(self, folder: Path) -> None:
        """Start it, with its socket in a folder; it imports while the first program waits."""
        path = str(folder / "fork")
        self.command = (sys.executable, "-IS", __file__, path)
        """What starts a program in a fork, in front of its file and arguments."""
        self._path = path
        listening = socket.socket(socket.AF_UNIX)
        with listening:
            listening.bind(path)
            listening.listen()
            self._process = subprocess.Popen(  # noqa: S603  # this file
                [sys.executable, "-m", __name__, str(listening.fileno())],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                pass_fds=(listening.fileno(),),
            )

    def close(self) -> None:
        """End it, as it ends too when this process dies; what it has forked goes on."""
        self._process.communicate()

    def run(
        self, command: Sequence[str], *, stdin: str, env: Mapping[str, str], cwd: Path, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as `subprocess.run` does, with all of its output captured.

        Raises:
            subprocess.TimeoutExpired: It took longer than `timeout` seconds, and was killed.
        """
        pipes = [_pipe(mode) for mode in "wrr"]
        written, stdout, stderr = (ours for ours, _ in pipes)
        with ThreadPoolExecutor(2) as readers, written, stdout, stderr:
            told = _ask(self._path, command, env, cwd, [theirs for _, theirs in pipes])
            for _, theirs in pipes:
                os.close(theirs)
            reading = [readers.submit(one.read) for one in (stdout, stderr)]
            with told:
                process = int(told.readline())
                with contextlib.suppress(BrokenPipeError), written:
                    written.write(stdin)
                try:
                    out, err = [one.result(timeout) for one in reading]
                except TimeoutError:
                    os.kill(process, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(list(command), timeout) from None
                return subprocess.CompletedProcess(list(command), int(told.readline()), out, err)


def _pipe(mode: str) -> tuple[IO[str], int]:
    """Return our end of a pipe, which we read or write, and the other."""
    reading, writing = os.pipe()
    ours, theirs = (reading, writing) if mode == "r" else (writing, reading)
    return open(ours, mode, encoding="utf-8"), theirs  # noqa: PTH123  # a descriptor


def _ask(path: str, command: Sequence[str], env: Mapping[str, str], cwd: Path, standard: Sequence[int]) -> IO[str]:
    """Have a program started; return what tells its process's id and then its exit code, a line each."""
    request = json.dumps({"argv": list(command), "env": dict(env), "cwd": str(cwd)}).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [request[:1]], standard)
        connection.sendall(request[1:])
        connection.shutdown(socket.SHUT_WR)
        return connection.makefile(encoding="utf-8")


def become_a_program(listening: socket.socket) -> None:
    """Fork for each request; return in the process that is to be the program."""
    cli = importlib.import_module("broker.cli")
    for module in (*(one.name for one in pkgutil.walk_packages(cli.__path__, "broker.cli.")), *IMPORTED_AT_FIRST_USE):
        importlib.import_module(module)
    gc.freeze()
    while True:
        if sys.stdin in select.select([listening, sys.stdin], [], [])[0]:
            os._exit(0)
        connection, _ = listening.accept()
        if os.fork() == 0:
            break
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    listening.close()
    request, standard, _, _ = socket.recv_fds(connection, _BYTES, 3)
    while part := connection.recv(_BYTES):
        request += part
    if (program := os.fork()) != 0:
        for descriptor in standard:
            os.close(descriptor)
        connection.sendall(f"{program}\n".encode())
        _, status = os.waitpid(program, 0)
        with contextlib.suppress(BrokenPipeError):  # whoever asked has been killed
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    connection.close()
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    given = json.loads(request)
    os.environ.clear()
    os.environ.update(given["env"])
    os.chdir(given["cwd"])
    sys.argv[:] = given["argv"]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))


if __name__ == "__main__":
    _, place, *arguments = sys.argv
    if arguments:
        with _ask(place, arguments, os.environ, Path.cwd(), (0, 1, 2)) as told:
            told.readline()
            sys.exit(int(told.readline()))
    become_a_program(socket.socket(fileno=int(place)))
    runpy.run_path(sys.argv[0], run_name="__main__")
