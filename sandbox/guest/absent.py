"""What a script does not have, and what its error says to use instead.

These are words, not walls: the host defines no such import, so a script that gets around them meets a trap.
"""

import builtins
import io
import os
import socket
import subprocess
import sys
import threading

_FILES = "a script has no files: keep data in variables, and use a server's tools to read or write files"
_NETWORK = "a script has no network: call a server's tools instead"
_PROCESSES = "a script can't start processes: call a server's tools instead"
_THREADS = "a script has no threads: use asyncio.gather or asyncio.TaskGroup to do things at the same time"


def install() -> None:
    """Replaces the functions that could only fail by ones that say why."""
    for module in (builtins, io):
        module.open = _refuse(_FILES)
    for name in ("open", "listdir", "scandir", "mkdir", "makedirs", "remove", "unlink", "rename", "rmdir"):
        setattr(os, name, _refuse(_FILES))
    socket.socket.__init__ = _refuse(_NETWORK)
    socket.getaddrinfo = socket.create_connection = _refuse(_NETWORK)
    subprocess.Popen.__init__ = _refuse(_PROCESSES)
    for name in ("system", "popen", "fork", "execv", "execve", "posix_spawn"):
        setattr(os, name, _refuse(_PROCESSES))
    threading.Thread.start = _refuse(_THREADS)
    os._exit = _exit
    os.write = _write


def _refuse(reason):
    def refused(*_, **__):
        raise PermissionError(reason)

    return refused


def _exit(status):
    raise SystemExit(status)


def _write(fd, data, /):
    stream = {1: sys.__stdout__, 2: sys.__stderr__}.get(fd)
    if stream is None:
        raise PermissionError(_FILES)
    return stream.buffer.write(data)
