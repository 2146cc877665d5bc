"""Images with further packages, by name: each in a folder with its lock.

`image_builds` makes them; `Sandbox(component="NAME")` runs scripts on them.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import platformdirs

from sandbox.componentize import guest_digest
from sandbox.errors import ImageError
from sandbox.image_loading import COMPONENT, load_image
from sandbox.locks import Wheel, read_lock
from sandbox.threads import run_aside

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sandbox.image import Image

COMPONENT_NAME = "guest.wasm"
PACKAGES_LOCK = "packages.lock"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image with packages.

    Attributes:
        name: What it is found by.
        component: Its `.wasm` file, for `Sandbox(component=…)`; the lock lies beside it.
        wheels: What went in.
        left_out: Compiled parts that were left out of the packages; empty for an image that was not built just now.
    """

    name: str
    component: Path
    wheels: tuple[Wheel, ...]
    left_out: tuple[str, ...] = ()

    @property
    def lock(self) -> Path:
        """The lock."""
        return self.component.with_name(PACKAGES_LOCK)


def find_image(name: str, folder: Path | None = None) -> Path:
    """Return the component of an image.

    Raises:
        ImageError: There is none of that name, or another version of this package built it.
    """
    image_folder(name, folder)
    found = {image.name: image for image in list_images(folder)}
    image = found.get(name)
    if image is None:
        known = f"; there are: {', '.join(found)}" if found else ""
        raise ImageError(
            f"there is no image {name!r}: build it with `codemode image build --name {name} --with PACKAGE`{known}"
        )
    if json.loads(image.component.with_suffix(".json").read_text("utf-8")).get("guest") != guest_digest():
        again = f"codemode image build --name {name} --lock {shlex.quote(str(image.lock))}"
        raise ImageError(f"the image {name!r} was built by another version of codemode: build it again with `{again}`")
    return image.component


async def load_selected(
    selected: Path | str | None,
    *,
    cache: Path | None = None,
    compiling: Callable[[str], AbstractContextManager[object]],
) -> Image:
    """Load an image, given as a `.wasm` file or by name, or the installed one; otherwise as `load_image`.

    A caller who is cancelled does not wait for the compiler. `compiling` is entered on a thread of its own, and left on
    the caller's.

    Raises:
        ImageError: There is no such image, or it cannot be used.
    """
    with contextlib.ExitStack() as shown:

        def show(unkept: str) -> contextlib.ExitStack:
            shown.enter_context(compiling(unkept))
            return shown

        def load() -> Image:
            component = find_image(selected) if isinstance(selected, str) else selected
            return load_image(component or COMPONENT, cache=cache, compiling=show)

        return await run_aside(load)


def list_images(folder: Path | None = None) -> tuple[BuiltImage, ...]:
    """Return all images that were built, by name."""
    parts = sorted(_folder(folder).glob(f"*/{COMPONENT_NAME}"))
    return tuple(
        BuiltImage(path.parent.name, path, read_lock(read_lock_file(path.with_name(PACKAGES_LOCK))))
        for path in parts
        if path.with_suffix(".json").exists() and path.with_name(PACKAGES_LOCK).exists()
    )


def remove_image(name: str, folder: Path | None = None) -> None:
    """Remove an image with its lock.

    Raises:
        ImageError: There is none of that name.
    """
    place = image_folder(name, folder)
    if not place.is_dir():
        raise ImageError(f"there is no image {name!r}; `codemode image list` has all")
    shutil.rmtree(place)


def image_folder(name: str, folder: Path | None) -> Path:
    """Return where an image of this name lies, whether there is one or not.

    Raises:
        ImageError: It cannot be the name of an image.
    """
    if not _NAME.fullmatch(name):
        raise ImageError(f"{name!r} is not a name for an image: use lower-case letters, digits, '-' and '_'")
    return _folder(folder) / name


def read_lock_file(lock: Path) -> str:
    """Return the text of a lock.

    Raises:
        ImageError: It cannot be read.
    """
    try:
        return lock.read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ImageError(f"the lock {lock} cannot be read: {reason}") from None


def _folder(folder: Path | None) -> Path:
    return folder or platformdirs.user_data_path("codemode-broker") / "images"
