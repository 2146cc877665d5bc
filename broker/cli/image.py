"""`codemode image`: guest images with further packages."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.cli.compile_progress import moving_bar, prepare_image
from broker.cli.exit_codes import ExitCode
from broker.cli.terminal import Problem, local_time, note, write_result, write_table
from codegen.plain_text import few
from sandbox import ImageError
from sandbox.compiled_cache import cached_images, remove_cached
from sandbox.image_builds import build_image
from sandbox.images import list_images, remove_image
from sandbox.limits import MIB
from sandbox.threads import run_aside

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sandbox.compiled_cache import CachedImage
    from sandbox.images import BuiltImage

_LEFT_OUT_SHOWN = 3


@dataclass(frozen=True)
class BuildRequest:
    """The arguments of `image build`."""

    name: str
    packages: tuple[str, ...]
    lock: Path | None
    as_json: bool


@dataclass(frozen=True)
class ImagesRequest:
    """The arguments of `image list`."""

    as_json: bool


@dataclass(frozen=True)
class RemoveRequest:
    """The arguments of `image rm`."""

    name: str
    is_compiled: bool = False


async def build(request: BuildRequest) -> ExitCode:
    """Build an image and compile it, so that the first script need not wait."""
    if bool(request.packages) == (request.lock is not None):
        problem = "an image is built either with packages or from a lock"
        raise Problem(problem, "Give --with PACKAGE, once for each, or --lock FILE.")

    with moving_bar() as show:
        image = await _attempt(
            partial(build_image, request.name, request.packages, lock=request.lock, on_progress=show)
        )
    await prepare_image(image.name)
    if request.as_json:
        write_result(json.dumps(_described(image)))
        return ExitCode.COMPLETED
    for wheel in image.wheels:
        note(f"{wheel.name} {wheel.version}")
    if image.left_out:
        note(f"left out, because they are compiled for this kind of machine: {few(image.left_out, _LEFT_OUT_SHOWN)}")
    note(f"{image.name} is built; locked in {image.lock}")
    note(f'scripts use it with "image": "{image.name}" in the config')
    return ExitCode.COMPLETED


async def show_images(request: ImagesRequest) -> ExitCode:
    """Print one line for each image."""
    images = await _attempt(list_images)
    if request.as_json:
        write_result(json.dumps([_described(image) for image in images]))
    elif not images:
        note("no images except the one that comes with codemode; build one with `codemode image build --with PACKAGE`")
    else:
        rows = [(image.name, ", ".join(f"{wheel.name} {wheel.version}" for wheel in image.wheels)) for image in images]
        write_table(("image", "packages"), rows)
    return ExitCode.COMPLETED


async def show_compiled(request: ImagesRequest) -> ExitCode:
    """Print one line for each compiled image in the cache, the one used last first."""
    cached = await _attempt(cached_images)
    if request.as_json:
        write_result(json.dumps([asdict(one) for one in cached]))
    elif not cached:
        note("no image is compiled yet; the first script compiles one")
    else:
        rows = [(one.key, f"{one.size // MIB} MiB", _used(one), one.wasmtime) for one in cached]
        write_table(("compiled", "size", "used", "wasmtime"), rows)
    return ExitCode.COMPLETED


def _used(image: CachedImage) -> str:
    return local_time(datetime.fromtimestamp(image.used, UTC))


async def remove(request: RemoveRequest) -> ExitCode:
    """Remove an image with its lock, or a compiled one from the cache."""
    work = remove_cached if request.is_compiled else remove_image
    await _attempt(lambda: work(request.name))
    note(f"removed {request.name}")
    return ExitCode.COMPLETED


async def _attempt(work: Callable[[], Any]) -> Any:
    """Do blocking work on a thread that Ctrl-C does not wait for; what it says about images is the user's to mend."""
    try:
        return await run_aside(work)
    except ImageError as error:
        raise Problem(str(error)) from None


def _described(image: BuiltImage) -> dict[str, Any]:
    packages = [{"name": wheel.name, "version": wheel.version, "sha256": wheel.sha256} for wheel in image.wheels]
    return {"name": image.name, "component": str(image.component), "lock": str(image.lock), "packages": packages}
