"""Builds the guest with further packages. The same lock gives the same image."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING

from sandbox.build_folder import build_folder
from sandbox.compiled import write_private
from sandbox.componentize import ComponentizeError, build_component, programs_ended_at_exit
from sandbox.errors import ImageError
from sandbox.images import COMPONENT_NAME, PACKAGES_LOCK, BuiltImage, image_folder, read_lock_file
from sandbox.locks import format_lock, read_lock
from sandbox.private_folder import prepare_folder
from sandbox.wheels import EXTRA, resolve, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

TAKEN = ("guest", "tools", "wit_world")
"""Modules of the image itself: a package that brings one could not be used."""

_FAILED = re.compile(r"cannot be imported: (\S+): (.*)")


def build_image(
    name: str,
    requirements: Sequence[str] = (),
    *,
    lock: Path | None = None,
    folder: Path | None = None,
    on_progress: Callable[[str], object] = lambda _what: None,
) -> BuiltImage:
    """Build an image, in place of one of the same name.

    Args:
        name: Lower-case letters, digits, `-` and `_`.
        requirements: Packages as pip takes them, if there is no lock.
        lock: The lock of an earlier build, for the same packages again.
        folder: Where images lie; default is in the user's data folder.
        on_progress: Told what begins now.

    Raises:
        ImageError: Something is missing, does not fit or does not import in the guest; the text says what.
    """
    place = image_folder(name, folder)
    if bool(requirements) == (lock is not None):
        raise ImageError("an image is built either with packages or from a lock: give one of the two")
    if importlib.util.find_spec("componentize_py") is None:
        raise ImageError(f"building an image needs componentize-py: {EXTRA}")
    _make(place.parent)
    with build_folder() as temporary, programs_ended_at_exit():
        scratch, packages = temporary / "pip", temporary / "packages"
        scratch.mkdir()
        if lock is None:
            on_progress("Choosing packages")
            wheels = resolve(requirements, scratch)
            text = format_lock(wheels, requirements)
        else:
            text = read_lock_file(lock)
            wheels = read_lock(text)
        on_progress(f"Fetching {len(wheels)} package{'' if len(wheels) == 1 else 's'}")
        left_out = unpack(wheels, packages, scratch)
        _check_modules(packages)
        on_progress("Building the image")
        _make(place)
        try:
            build_component(place / COMPONENT_NAME, packages, scratch=temporary)
        except ComponentizeError as error:
            raise ImageError(_import_failure(str(error), left_out)) from None
    write_private(place / PACKAGES_LOCK, text.encode())
    return BuiltImage(name, place / COMPONENT_NAME, wheels, left_out)


def _make(folder: Path) -> None:
    problem = prepare_folder(folder, "image folder", "XDG_DATA_HOME", is_written=True)
    if problem:
        raise ImageError(problem)


def _check_modules(packages: Path) -> None:
    for name in TAKEN:
        if (packages / name).exists() or (packages / f"{name}.py").exists():
            raise ImageError(f"a package brings a module {name!r}, which every image has already: it cannot be used")


def _import_failure(said: str, left_out: Sequence[str]) -> str:
    found = _FAILED.search(said)
    if found is None:
        return f"the image cannot be built: {said[-1_000:]}"
    module, reason = found.groups()
    if any(path.partition("/")[0].partition(".")[0] == module for path in left_out):
        return f"{module} has compiled parts and does not work without them in WebAssembly, so it cannot be in an image"
    return f"{module} cannot be imported in the guest ({reason[:300]}), so it cannot be in an image"
