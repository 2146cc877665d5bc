"""What a worker process cannot do, shown in the real worker at the moment it would take its first run.

The attack is the worker's own code, as if a guest had escaped into it; the control is the same without the wall.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from pathlib import Path

import anyio
import pytest

from sandbox import Sandbox, spawn
from sandbox.compiled import map_apart
from sandbox.confinement import Confinement
from sandbox.worker_process import WorkerProcess

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="seccomp and Landlock are Linux's"),
]

ESCAPED = """
import ctypes, json, mmap, os, signal, socket, subprocess, threading
from sandbox import confinement

def fork():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)

def connect():
    with socket.socket() as connection:
        connection.connect(("127.0.0.1", PORT))

def trace():
    if libc.ptrace(0, 0, None, None) < 0:
        raise OSError(ctypes.get_errno(), "")

def thread():
    try:
        started = threading.Thread(target=int)
        started.start()
        started.join()
    except RuntimeError:
        raise OSError(1, "") from None

libc = ctypes.CDLL(None, use_errno=True)
ATTACKS = {
    "read a file": lambda: open("/etc/passwd").close(),
    "write a file": lambda: open(PLACE, "w").close(),
    "list a folder": lambda: os.listdir("/"),
    "remove a file": lambda: os.unlink(VICTIM),
    "open a socket": lambda: socket.socket().close(),
    "open a local socket": lambda: socket.socket(socket.AF_UNIX).close(),
    "connect": connect,
    "fork": fork,
    "start a program": lambda: os.waitpid(os.posix_spawn("/bin/true", ["/bin/true"], {}), 0),
    "start a thread": thread,
    "signal the host": lambda: os.kill(os.getppid(), 0),
    "be traced": trace,
    "copy a descriptor": lambda: os.close(os.dup(1)),
    "make code": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC).close(),
    "become another program": lambda: os.execv("/bin/false-that-is-not-there", ["x"]),
}

def attempt(action):
    try:
        action()
    except OSError as error:
        return error.errno
    return 0

def serve(self):
    found = {name: attempt(ATTACKS[name]) for name in CHOSEN}
    self._connection.sendall(json.dumps(found).encode())

worker._Worker.serve = serve
"""
NO_WALL = "worker.deny_files = lambda readable: 0\nworker.confine = lambda landlock: confinement.Confinement()\n"
NO_SECCOMP = "confinement._filter_system_calls = lambda: False\n"
NO_RLIMITS = "confinement._limit_resources = lambda: False\n"
NO_LANDLOCK = "worker.deny_files = lambda readable: 0\n"


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def attack(image, monkeypatch, tmp_path, listener):
    """Runs attacks inside a worker and returns the error number each met, 0 for success."""

    async def attack(chosen, changes=""):
        victim = tmp_path / "victim"
        victim.touch()
        values = {"CHOSEN": chosen, "PORT": listener.getsockname()[1], "PLACE": str(tmp_path / "new")}
        values |= {"VICTIM": str(victim)}
        settings = "".join(f"{name} = {value!r}\n" for name, value in values.items())
        boot = spawn.BOOT.replace("worker.main(", f"{settings}{ESCAPED}{changes}worker.main(")
        monkeypatch.setattr(spawn, "BOOT", boot)
        ours, theirs = socket.socketpair()
        page = spawn.shared_page()
        with ours, theirs:
            process = spawn.spawn_worker(theirs.fileno(), page, image.file)
            theirs.close()
            os.close(page)
            told = await anyio.to_thread.run_sync(_all_of, ours)
            await anyio.to_thread.run_sync(process.wait)
        return json.loads(told[told.index(b"}") + 1 :])  # after the frame that reports the confinement

    return attack


def _all_of(connection):
    connection.settimeout(30)
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


ALL = [
    "read a file", "write a file", "list a folder", "remove a file", "open a socket", "open a local socket", "connect",
    "fork", "start a program", "start a thread", "signal the host", "be traced", "copy a descriptor", "make code",
]  # fmt: skip


async def test_a_worker_reaches_nothing_outside_itself(attack):
    found = await attack([*ALL, "become another program"])
    assert found == dict.fromkeys([*ALL, "become another program"], errno.EPERM)


async def test_the_same_attacks_succeed_without_the_wall(attack):
    found = await attack(ALL, NO_WALL)
    assert found == dict.fromkeys(ALL, 0)


async def test_landlock_alone_denies_files_and_connections(attack):
    chosen = ["read a file", "write a file", "list a folder", "remove a file", "connect", "open a socket"]
    found = await attack(chosen, NO_SECCOMP + NO_RLIMITS)
    denied = dict.fromkeys(chosen, errno.EACCES)
    assert found == denied | {"open a socket": 0}  # but it cannot be connected


async def test_resource_limits_alone_leave_no_room_for_a_descriptor(attack):
    chosen = ["read a file", "open a socket", "copy a descriptor"]
    found = await attack(chosen, NO_SECCOMP + NO_LANDLOCK)
    assert found == dict.fromkeys(chosen, errno.EMFILE)


def proc(worker, name):
    return Path("/proc", str(worker.pid), name)


@pytest.fixture
async def worker(image):
    worker = WorkerProcess(image.file)
    with anyio.fail_after(60):
        await worker.ready()
    yield worker
    worker.kill()


async def test_a_worker_starts_with_an_empty_environment_and_no_input(worker):
    assert proc(worker, "environ").read_bytes() == b""
    assert [str(proc(worker, f"fd/{number}").readlink()) for number in range(3)] == ["/dev/null"] * 3
    assert str(proc(worker, "cwd").readlink()) == "/"


async def test_a_worker_inherits_no_descriptor(image):
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)  # noqa: FBT003
    os.set_inheritable(writing, True)  # noqa: FBT003
    pipe = os.readlink(f"/proc/self/fd/{reading}")  # noqa: PTH115  # no path, and not one after Path has read it
    worker = WorkerProcess(image.file)
    try:
        with anyio.fail_after(60):
            await worker.ready()
        held = [str(link.readlink()) for link in proc(worker, "fd").iterdir()]
    finally:
        worker.kill()
        os.close(reading)
        os.close(writing)
    assert pipe not in held
    assert sum(name.startswith("socket:") for name in held) == 1
    # libffi may open itself, to map the code that it calls back through.
    files = {name for name in held if not name.startswith(("socket:", "/memfd:")) and "/libffi.so" not in name}
    assert files <= {"/dev/null", str(image.compiled)}


async def test_a_worker_that_maps_a_file_without_a_name_is_confined_and_keeps_no_way_to_write_to_it(image):
    _component, nameless = map_apart(image.compiled.read_bytes())
    worker = WorkerProcess(nameless)
    try:
        with anyio.fail_after(60):
            await worker.ready()
        assert worker.confinement is not None
        assert worker.confinement.missing == ()
        held = [link for link in proc(worker, "fd").iterdir() if "/memfd:compiled" in str(link.readlink())]
        access = [int(proc(worker, f"fdinfo/{link.name}").read_text().split()[3], 8) & os.O_ACCMODE for link in held]
    finally:
        worker.kill()
    assert set(access) <= {os.O_RDONLY}


async def test_every_thread_of_a_worker_is_confined(worker):
    assert worker.confinement is not None
    for status in proc(worker, "task").glob("*/status"):
        lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
        assert lines["NoNewPrivs"] == "1"
        assert lines["Seccomp"] == "2"


async def test_what_confines_the_workers_is_reported(image):
    async with Sandbox(isolation="process", cache=image.compiled.parent) as sandbox:
        confinement = sandbox.confinement
    assert confinement is not None
    assert confinement.missing == ()
    assert Confinement().missing == ("resource_limits", "no_new_privileges", "seccomp", "landlock")


async def test_in_thread_isolation_there_is_nothing_to_report(image):
    async with Sandbox(isolation="thread", cache=image.compiled.parent) as sandbox:
        assert sandbox.confinement is None
