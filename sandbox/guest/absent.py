"""What a script does not have, and what its error says to use instead.

These are words, not walls: the host defines no such import, so a script that gets around them meets a trap.
"""

import builtins
import concurrent.futures.process
import contextlib
import functools
import glob
import io
import multiprocessing.process
import os
import pathlib
import posix
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import warnings

from . import packages
from .loop import SansIOLoop

_FILES = "a script has no files: keep data in variables, and use a server's tools to read or write files"
_ASKED = "a script has no files, so this says nothing about the user's: ask a server's tools whether one is there"
_NETWORK = "a script has no network: call a server's tools instead"
_PROCESSES = "a script cannot start processes: call a server's tools instead"
_DEBUGGER = "nobody sits at a debugger here: print what you want to see"
_ENVIRONMENT = "a script has no environment: servers have their own credentials, so none are needed here"
_THREADS = "a script has no threads: use asyncio.gather or asyncio.TaskGroup to do things at the same time"
_PATHS = frozenset({"genericpath", "os", "pathlib", "posixpath"})
"""Modules that ask on behalf of who called them."""

_variable_itself = os.environ.__class__.__getitem__
_LOOPS = frozenset({"anyio", "nest_asyncio", "trio", "uvloop"})
_CLIENTS = frozenset({"aiohttp", "httpx", "requests", "urllib3"})


def install() -> None:
    """Replace the functions that could only fail by ones that say why."""
    for module in (builtins, io):
        module.open = _open
    for name in (
        *("open", "listdir", "scandir", "walk", "chdir", "mkdir", "makedirs", "remove", "unlink", "rename", "replace"),
        *("rmdir", "removedirs", "chmod", "utime", "truncate", "readlink", "link", "symlink"),
    ):
        setattr(os, name, _refuse(_FILES))
    os.stat, os.lstat = _of_path(os.stat), _of_path(os.lstat)
    for module, name in ((os.path, "exists"), (os.path, "lexists"), (os.path, "isfile"), (os, "access")):
        setattr(module, name, _asked(getattr(module, name), is_of_file=True))
    os.path.isdir = _asked(os.path.isdir, is_of_file=False)
    for name in ("glob", "rglob", "walk", "mkdir"):
        setattr(pathlib.Path, name, _refuse(_FILES))
    glob.glob = glob.iglob = _refuse(_FILES)
    os.environ.__class__.__getitem__ = _variable
    socket.socket.__init__ = _refuse(_NETWORK)
    for name in (
        "getaddrinfo",
        "create_connection",
        "gethostbyname",
        "gethostbyname_ex",
        "gethostbyaddr",
        "getnameinfo",
    ):
        setattr(socket, name, _refuse(_NETWORK))
    urllib.request.OpenerDirector.open = _refuse(_NETWORK)
    subprocess.Popen.__init__ = _refuse(_PROCESSES)
    for name in ("system", "popen", "fork", "execv", "execve", "posix_spawn"):
        setattr(os, name, _refuse(_PROCESSES))
    multiprocessing.process.BaseProcess.start = multiprocessing.Pool = _refuse(_PROCESSES)
    concurrent.futures.process.ProcessPoolExecutor.__init__ = _refuse(_PROCESSES)
    threading.Thread.start = _refuse(_THREADS)
    sqlite3.connect = sqlite3.dbapi2.connect = _in_memory(sqlite3.connect)
    tempfile.tempdir = "/tmp"  # noqa: S108  # not looked for, so that opening a file there says why it cannot be
    for name in ("create_connection", "create_server", "create_datagram_endpoint", "getaddrinfo", "getnameinfo"):
        setattr(SansIOLoop, name, _refuse(_NETWORK))
    for name in ("subprocess_exec", "subprocess_shell"):
        setattr(SansIOLoop, name, _refuse(_PROCESSES))
    threading.Lock = threading._allocate_lock = Lock
    for module in (os, posix):
        module._exit, module.write = _exit, _write
    sys.breakpointhook = _refuse(_DEBUGGER)


def import_hint(error: BaseException) -> str | None:
    """Return why a module cannot be imported, for one that is nothing the script wrote."""
    if not isinstance(error, ModuleNotFoundError) or not error.name or error.name.startswith("tools"):
        return None
    root = error.name.partition(".")[0]
    if root in sys.modules:
        return None  # it lacks the module that was looked for inside of it
    if root in sys.stdlib_module_names:
        return f"{root} needs what a script does not have (files, network, a screen or C libraries), so it is left out"
    if root in _CLIENTS:
        return f"{root} is not available, and {_NETWORK}"
    if root in _LOOPS:
        return f"{root} is not available and not needed: a script can `await` at its top level, in asyncio's event loop"
    here = ", ".join(["Python's standard library", *sorted(packages.names)])
    return f"{root} is not available: a script can import only {here} and `tools`"


class Lock:
    """`threading.Lock` where nobody else can release one: waiting for it for ever is an error, not a trap."""

    def __init__(self):
        self._is_locked = False

    def acquire(self, blocking=True, timeout=-1):  # noqa: FBT002  # the signature of the real one
        if blocking and self._is_locked:
            if timeout < 0:
                raise RuntimeError(f"the script waits for a lock that nothing can release: {_THREADS}")
            time.sleep(timeout)
        if self._is_locked:
            return False
        self._is_locked = True
        return True

    def release(self):
        if not self._is_locked:
            raise RuntimeError("release unlocked lock")
        self._is_locked = False

    def locked(self):
        return self._is_locked

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()


def _open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):  # noqa: FBT002, PLR0917
    data = packages.read_data(file) if set(mode) <= set("rbt") else None
    if data is None:
        raise PermissionError(_FILES)
    return io.BytesIO(data) if "b" in mode else io.TextIOWrapper(io.BytesIO(data), encoding or "utf-8", errors, newline)


def _of_path(stat):
    """Refuse to look at a path; a stream's number may be looked at."""

    @functools.wraps(stat)
    def of_path(path, **options):
        if isinstance(path, int):
            return stat(path, **options)
        os.fspath(path)
        raise PermissionError(_FILES)

    return of_path


def _asked(function, *, is_of_file):
    """Answer for the data files of packages, and say on standard error that a script's other paths are unknown.

    A library that looks for files of its own takes the answer as it is, and nothing is said.
    """

    @functools.wraps(function)
    def asked(path, *args, **options):
        if packages.read_data(path) is not None:
            return is_of_file
        found = function(path, *args, **options)
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") in _PATHS:
            frame = frame.f_back
        if not found and frame.f_globals.get("__name__") == "__main__":
            told = frame.f_globals.setdefault("__warningregistry__", {})
            warnings.warn_explicit(_ASKED, UserWarning, frame.f_code.co_filename, frame.f_lineno, registry=told)
        return found

    return asked


def _in_memory(connect):
    """Keep in memory what SQLite would sort in a file, and say why it opens none."""

    @functools.wraps(connect)
    def connect_in_memory(*args, **kwargs):
        try:
            connection = connect(*args, **kwargs)
        except sqlite3.OperationalError:
            raise sqlite3.OperationalError(f'{_FILES}; sqlite3.connect(":memory:") works') from None
        with contextlib.suppress(sqlite3.Error):  # not while a transaction is open, as `autocommit=False` does
            connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    return connect_in_memory


def _refuse(reason):
    def refused(*_, **__):
        raise PermissionError(reason)

    return refused


def _variable(environment, name):
    try:
        return _variable_itself(environment, name)
    except KeyError as error:
        error.add_note(_ENVIRONMENT)
        raise


def _exit(status):
    raise SystemExit(status)


def _write(fd, data, /):
    stream = {1: sys.__stdout__, 2: sys.__stderr__}.get(fd)
    if stream is None:
        raise PermissionError(_FILES)
    return stream.buffer.write(data)
