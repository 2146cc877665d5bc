"""Builds the guest component from `sandbox/guest` with componentize-py.

Runs while a wheel or an editable install is built and when an image with packages is, so it imports nothing beyond the
standard library before it is needed, and nothing of this package. The component is made from a staging folder that
holds exactly what goes in: no path and no package of the building machine ends up in the snapshot. On Linux, with a C
compiler, equal inputs give equal bytes (`reproducible.c`).
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

GUEST = Path(__file__).with_name("guest")
PIN = Path(__file__).with_name("reproducible.c")
LINKER = Path(__file__).with_name("static_link")
REQUIREMENTS = ("componentize-py", "tzdata")

_BUILD = "import sys, componentize_py; sys.exit(componentize_py.script())"
# Everything is imported before: the dynamic linker takes libraries of the same inode for the same.
_PINNED = f"import ctypes, sys, componentize_py\nif ctypes.CDLL(None).pin_inputs(): sys.exit(75)\n{_BUILD}"
_NOT_PINNED = 75
"""How the build ends where the kernel does not let itself be asked to pin what it sees."""

_KILLED_SECONDS = 1.0
_starting = threading.Lock()
_running: dict[subprocess.Popen[str], threading.Event] = {}


class ComponentizeError(Exception):
    """componentize-py could not make the component; the text holds what it said."""


def build_component(component: Path, packages: Path | None = None, *, scratch: Path | None = None) -> None:
    """Build `component` unless the one there was made from the same sources by the same tools.

    Args:
        component: Where the `.wasm` file goes. A `.json` file beside it notes what it is and was made from.
        packages: A folder of pure-Python packages to put into the image, all their modules imported.
        scratch: Where a folder is made to work in; default is the temporary directory.

    Raises:
        ComponentizeError: The build failed.
    """
    inputs = inputs_digest(packages)
    noted = component.with_suffix(".json")
    if component.exists() and noted.exists() and json.loads(noted.read_text("utf-8"))["inputs"] == inputs:
        return
    with tempfile.TemporaryDirectory(prefix="codemode-guest-", dir=scratch, ignore_cleanup_errors=True) as folder:
        staging = Path(folder)
        _stage(staging, packages)
        made = staging / "guest.wasm"
        is_reproducible = _componentize(staging, made)
        made = _linked(staging, made)
        note = {
            "inputs": inputs,
            "guest": guest_digest(),
            "sha256": hashlib.sha256(made.read_bytes()).hexdigest(),
            "reproducible": is_reproducible,
            "tools": _tools(),
        }
        partial = component.with_suffix(".partial")
        shutil.copyfile(made, partial)
        partial.replace(component)
    noted.write_text(json.dumps(note, indent=2) + "\n", "utf-8")


def inputs_digest(packages: Path | None = None) -> str:
    """Return a digest of everything the component is made from: guest sources, packages and tool versions."""
    added = [] if packages is None else _digests(packages, [path for path in packages.rglob("*") if path.is_file()])
    linker = _digests(LINKER, [*LINKER.glob("*.py")])
    text = "\n".join([json.dumps(_tools()), PIN.read_text("utf-8"), *linker, guest_digest(), *added])
    return hashlib.sha256(text.encode()).hexdigest()


def guest_digest() -> str:
    """Return a digest of the guest's sources: an image built from others does not speak with this host."""
    return hashlib.sha256("\n".join(_digests(GUEST, _sources())).encode()).hexdigest()


def _digests(folder: Path, paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(folder).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(paths)
    ]


def _tools() -> dict[str, str]:
    return {name: version(name) for name in REQUIREMENTS}


def _sources() -> list[Path]:
    return [*GUEST.rglob("*.py"), GUEST / "world.wit", GUEST / "immortal.wat"]


def _stage(staging: Path, packages: Path | None) -> None:
    app = staging / "app"
    for path in _sources():
        target = app / "guest" / path.relative_to(GUEST)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    (app / "immortal.cpython-314-wasm32-wasi.so").write_bytes(_assembled(GUEST / "immortal.wat"))
    tzdata = importlib.util.find_spec("tzdata")
    if tzdata is None or tzdata.origin is None:
        raise ComponentizeError("the tzdata package is not installed in the build environment")
    shutil.copytree(Path(tzdata.origin).parent, app / "tzdata", ignore=shutil.ignore_patterns("__pycache__"))
    added = staging / "added"
    # Not on the Python path itself: the guest adds it when Python has started.
    shutil.copytree(packages, added / "packages") if packages else added.mkdir()
    # componentize-py adds the site-packages of the environment it runs in; it finds this empty one instead.
    (staging / "environment" / "lib" / "site-packages").mkdir(parents=True)


def _assembled(text: Path) -> bytes:
    import wasmtime  # noqa: PLC0415  # a build environment has it, and nothing else that imports this may need it

    return bytes(wasmtime.wat2wasm(text.read_text("utf-8")))


def _componentize(staging: Path, made: Path) -> bool:
    """Make the component; return whether another build of the same inputs would give the same bytes."""
    pin = _compile_pin(staging)
    if pin is not None:
        finished = _run(staging, made, _PINNED, {"LD_PRELOAD": str(pin)})
        if finished.returncode != _NOT_PINNED:
            _check(finished, made)
            return True
    _check(_run(staging, made, _BUILD, {}), made)
    return False


def _compile_pin(staging: Path) -> Path | None:
    """Compile what makes builds repeat, where that is possible."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if sys.platform != "linux" or compiler is None:
        return None
    made = staging / "reproducible.so"
    finished = run_program([compiler, "-O1", "-shared", "-fPIC", "-o", str(made), str(PIN)], staging)
    return made if finished.returncode == 0 else None


def _run(staging: Path, made: Path, program: str, preload: dict[str, str]) -> subprocess.CompletedProcess[str]:
    app = staging / "app"
    command = [
        sys.executable, "-P", "-c", program, "--wit-path", str(app / "guest" / "world.wit"), "--world", "guest",
        "componentize", "guest.main",
        "--python-path", str(app), "--python-path", str(staging / "added"), "--output", str(made),
    ]  # fmt: skip
    return run_program(command, staging, {"VIRTUAL_ENV": str(staging / "environment")} | preload)


def _linked(staging: Path, made: Path) -> Path:
    """Link the component's libraries; as a process, because a build environment cannot import this package."""
    shutil.copytree(LINKER, staging / LINKER.name, ignore=shutil.ignore_patterns("__pycache__"))
    linked = staging / "linked.wasm"
    # -P: nothing of the folder that the build was started in is imported.
    command = [sys.executable, "-P", "-m", LINKER.name, str(made), str(linked)]
    finished = run_program(command, staging, {"PYTHONPATH": str(staging)})
    if finished.returncode != 0:
        raise ComponentizeError(f"the component's libraries cannot be linked:\n{finished.stderr}")
    return linked


@contextmanager
def programs_ended_at_exit() -> Iterator[None]:
    """Let no program of `run_program` outlive this process, where a thread that nobody waits for runs them."""
    end = atexit.register(partial(_end_programs))
    try:
        yield
    finally:
        atexit.unregister(end)


def run_program(
    command: list[str], scratch: Path, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, where its temporary files are too; it ends, with what it started, where this does."""
    environment = os.environ | {"TMPDIR": str(scratch)} | (variables or {})
    with _starting:
        process = subprocess.Popen(  # noqa: S603  # no shell, and a text of a caller is never an option
            command,
            cwd=scratch,
            env=environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        ended = _running[process] = threading.Event()
    with process:
        try:
            output, errors = process.communicate()
        except BaseException:
            _kill(process)
            raise
        finally:
            del _running[process]
            ended.set()
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _end_programs() -> None:
    _starting.acquire()  # for good: no thread starts another
    for process, ended in list(_running.items()):
        _kill(process)
        ended.wait(_KILLED_SECONDS)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a program with what it has started, as a compiler its passes."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _check(finished: subprocess.CompletedProcess[str], made: Path) -> None:
    if finished.returncode != 0 or not made.exists():
        raise ComponentizeError(f"componentize-py failed:\n{finished.stdout}{finished.stderr}")
