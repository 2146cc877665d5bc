"""Runs programs in forks of a process that has imported the broker, which takes two seconds.

`preloaded.py SOCKET` is that process; it prints a line when it listens. `preloaded.py SOCKET PROGRAM ARGUMENT…` then is
`python PROGRAM ARGUMENT…`: a process of its own, with this one's folder, environment, output and exit code.
"""

from __future__ import annotations

import json
import os
import runpy
import socket
import sys
import traceback
from importlib import import_module
from pathlib import Path

PRELOADED = (
    "broker.broker",
    "broker.upstreams.login",
    "datamodel_code_generator.parser.jsonschema",  # this and the rest are imported at the first use
    "httpcore2",
    "trio",
)
LONGEST_REQUEST = 1_000_000


def serve(path: str) -> None:
    for module in PRELOADED:
        import_module(module)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        print("ready", flush=True)  # noqa: T201  # whoever started it waits for it
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                os._exit(answer(connection))
            connection.close()
            reap()


def answer(connection: socket.socket) -> int:
    message, descriptors, _, _ = socket.recv_fds(connection, LONGEST_REQUEST, 2)
    sys.argv, environment, folder = json.loads(message)
    os.dup2(descriptors[0], 1)
    os.dup2(descriptors[1], 2)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except BaseException:  # noqa: BLE001  # as the interpreter does
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    connection.send(bytes([code]))
    return code


def reap() -> None:
    while os.waitpid(-1, os.WNOHANG)[0]:
        pass


def run(path: str, command: list[str]) -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        message = json.dumps([command, dict(os.environ), str(Path.cwd())]).encode()
        socket.send_fds(connection, [message], [1, 2])
        return (connection.recv(1) or b"\x01")[0]


if __name__ == "__main__":
    _, path, *command = sys.argv
    if command:
        sys.exit(run(path, command))
    serve(path)
