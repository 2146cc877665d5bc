"""Shows that work on the guest image goes on: a moving bar on a terminal, a plain line for each part elsewhere."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from broker.cli.terminal import Problem, note, notes
from sandbox import ImageError, SystemLimitError
from sandbox.images import load_selected
from sandbox.system_limits import check_address_space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.image import Image

_TEXT = "Compiling the sandbox image ({}, about 10 s)"


async def prepare_image(name: str | None) -> Image:
    """Load the guest image, the installed one or the one of that name, compiling it first where needed.

    Raises:
        Problem: The image is missing or has no place, in the cache or in the address space.
    """
    try:
        check_address_space()
        return await load_selected(name, compiling=compile_progress)
    except (ImageError, SystemLimitError) as error:
        raise Problem(str(error)) from None


@contextmanager
def compile_progress(unkept: str = "") -> Iterator[None]:
    """Be entered for as long as the image compiles. wasmtime reports no progress, so the bar only moves.

    `unkept` is why that cannot be kept for the next command.
    """
    if unkept:
        note(f"The compiled sandbox image cannot be kept: {unkept}")
    with moving_bar() as show:
        show(_TEXT.format("for this command alone" if unkept else "once"))
        yield


@contextmanager
def moving_bar() -> Iterator[Callable[[str], object]]:
    """Give a function that says what is being done, for as long as that goes on."""
    console = notes()
    if not console.is_terminal:
        yield note
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda what: progress.update(task, description=what)
