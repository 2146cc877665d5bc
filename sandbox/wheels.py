"""Wheels for an image: chosen, pinned by hash, unpacked, by pip in a process of its own. No code of theirs runs here.

Only wheels are taken, never sources: a source package runs its own build on this machine. A wheel's compiled parts are
for other machines than WebAssembly, so they are removed; many packages do without.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
import zipfile
from errno import EFBIG
from typing import TYPE_CHECKING

from sandbox.componentize import run_program
from sandbox.errors import ImageError
from sandbox.limits import MIB
from sandbox.locks import Wheel

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from pathlib import Path

GUEST_PYTHON = "3.14"
MAX_UNPACKED_BYTES = 512 * MIB
"""Of all wheels of an image together, and of each wheel as it is fetched."""

EXTRA = "pip install 'codemode-broker[images]'"

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_BOUND = r"(?:===?|~=|!=|<=?|>=?)\s*[A-Za-z0-9.*+!_-]+"
_REQUIREMENT = re.compile(
    rf"\s*{_NAME}\s*(?:\[\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\])?\s*(?:{_BOUND}(?:\s*,\s*{_BOUND})*)?\s*"
)
_PIP = """
import runpy, sys
if sys.platform != "win32":
    import resource
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, ({most} if allowed < 0 else min({most}, allowed), allowed))
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
_MAX = f"all packages of an image together may have {MAX_UNPACKED_BYTES // MIB} MiB"
_FETCHED = re.compile(r"Downloading (\S+) \((.+)\)")
_MISSING = re.compile(r"No matching distribution found for ([^\s(]+)")
_COMPILED = (".so", ".pyd", ".dylib")
_NEEDLESS = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
_INSTALL = ("install", "--no-compile", "--ignore-installed")
_PURE = ("--platform", "any", "--implementation", "py", "--abi", "none")
_ANY = (
    "--platform", "manylinux_2_17_x86_64", "--platform", "manylinux2014_x86_64", "--platform", "manylinux_2_28_x86_64",
    "--platform", "any", "--implementation", "cp", "--abi", "cp314", "--abi", "abi3", "--abi", "none",
)  # fmt: skip


def resolve(requirements: Sequence[str], scratch: Path) -> tuple[Wheel, ...]:
    """Choose wheels for requirements and all that they need: only pure ones if that is possible.

    Args:
        requirements: As pip takes them: a name, perhaps with extras and bounds of its version. No addresses or files.
        scratch: An empty folder for what pip needs on the way.

    Raises:
        ImageError: A requirement cannot be read, or no wheel fits; the text names it.
    """
    for requirement in requirements:
        if not _REQUIREMENT.fullmatch(requirement):
            raise ImageError(
                f"{requirement!r} is not a package: give a name as on PyPI, like 'pyyaml' or 'jinja2>=3.1'"
            )
    report = scratch / "report.json"
    choice = (*_INSTALL, "--target", str(scratch / "target"), "--dry-run", "--report", str(report), *requirements)
    finished = _pip(scratch, _PURE, choice)
    if finished.returncode != 0:
        finished = _pip(scratch, _ANY, choice)
    if finished.returncode != 0:
        raise ImageError(_nothing_fits(finished, scratch))
    chosen = json.loads(report.read_text("utf-8"))["install"]
    wheels = [
        Wheel(
            item["metadata"]["name"],
            item["metadata"]["version"],
            item["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for item in chosen
    ]
    return tuple(sorted(wheels, key=lambda wheel: wheel.name.lower()))


def unpack(wheels: Sequence[Wheel], folder: Path, scratch: Path) -> tuple[str, ...]:
    """Put the wheels' modules into `folder`; return the compiled parts that were left out.

    Raises:
        ImageError: A wheel cannot be fetched any more, is not the one that was locked, or is too large.
    """
    fetched = scratch / "wheels"
    lock = scratch / "requirements.txt"
    lock.write_text("".join(f"{wheel}\n" for wheel in wheels), "utf-8")
    locked = ("--no-deps", "--require-hashes", "--requirement", str(lock))
    finished = _pip(scratch, _ANY, ("download", "--dest", str(fetched), *locked))
    if finished.returncode == 0:
        _check_sizes(fetched)
        here = ("--no-index", "--find-links", str(fetched))
        finished = _pip(scratch, _ANY, (*_INSTALL, "--target", str(folder), *here, *locked))
    if finished.returncode != 0:
        if "DO NOT MATCH THE HASHES" in finished.stderr:
            raise ImageError("a package has changed since it was locked; nothing was built")
        raise ImageError(_nothing_fits(finished, scratch))
    folder.mkdir(exist_ok=True)  # pip makes none for no wheels
    return _tidy(folder)


def _pip(scratch: Path, tags: Sequence[str], choice: Sequence[str]) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec("pip") is None:
        raise ImageError(f"building an image needs pip and componentize-py: {EXTRA}")
    command = [
        sys.executable, "-P", "-c", _PIP.format(most=MAX_UNPACKED_BYTES), *choice, "--disable-pip-version-check",
        "--no-input", "--progress-bar", "off", "--retries", "2", "--timeout", "30", "--only-binary", ":all:",
        "--python-version", GUEST_PYTHON, *tags,
    ]  # fmt: skip
    return run_program(command, scratch)  # requirements were checked: none is an option, an address or a file


def _check_sizes(folder: Path) -> None:
    """Refuse wheels that unpack to too much, before any is; no more comes out of a wheel than it announces."""
    sizes = {}
    for path in folder.iterdir():
        with zipfile.ZipFile(path) as wheel:
            sizes[path.name] = sum(member.file_size for member in wheel.infolist())
    total = sum(sizes.values())
    if total > MAX_UNPACKED_BYTES:
        largest = max(sizes, key=lambda name: sizes[name])
        others = "" if len(sizes) == 1 else f", and {total // MIB} MiB with the others"
        raise ImageError(f"{largest} has {sizes[largest] // MIB} MiB when unpacked{others}: {_MAX}")


def _nothing_fits(finished: subprocess.CompletedProcess[str], scratch: Path) -> str:
    said = finished.stderr
    if os.strerror(EFBIG) in said:
        [*_, (name, size)] = [("a wheel", "more"), *_FETCHED.findall(finished.stdout)]
        return f"{name} has {size}: {_MAX}"
    found = _MISSING.search(said)
    if found is None:
        errors = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR: ")]
        return f"the packages cannot be had: {(errors or ['pip failed'])[-1][:500]}"
    requirement = found[1]
    name = re.match(_NAME, requirement)
    command = [sys.executable, "-m", "pip", "index", "versions", "--disable-pip-version-check", name[0] if name else ""]
    known = run_program(command, scratch)
    if known.returncode != 0:
        return f"there is no package {requirement!r}: look for its name on PyPI"
    return (
        f"{requirement!r} has no wheel for CPython {GUEST_PYTHON}, only sources: those would run their own build on "
        "this machine, so they are not taken"
    )


def _tidy(folder: Path) -> tuple[str, ...]:
    """Remove what an image has no use for, and what differs from one install to the next."""
    compiled = sorted(path for path in folder.rglob("*") if path.suffix in _COMPILED or path.name.endswith(".so"))
    left_out = tuple(path.relative_to(folder).as_posix() for path in compiled)
    needless = [path for info in folder.glob("*.dist-info") for path in map(info.joinpath, _NEEDLESS) if path.exists()]
    for path in (*compiled, *needless):
        path.unlink()
    for path in (folder / "bin", *folder.rglob("__pycache__"), *folder.glob("*.libs")):
        shutil.rmtree(path, ignore_errors=True)
    return left_out
