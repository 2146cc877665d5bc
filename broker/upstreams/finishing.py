"""Work that is not cut off in the middle, because what it has begun elsewhere would be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def finish(work: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Do some work; cancelled, it has so many seconds more.

    Raises:
        Exception: Whatever the work raises, as it is.
    """
    ended = anyio.Event()
    shield = anyio.CancelScope(shield=True)
    results: list[T] = []
    errors: list[Exception] = []

    async def perform() -> None:
        with shield:
            try:
                results.append(await work())
            except Exception as error:  # noqa: BLE001  # raised below, outside of the group
                errors.append(error)
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(perform)
        try:
            await ended.wait()
        except anyio.get_cancelled_exc_class():
            shield.deadline = anyio.current_time() + seconds
            raise
    if errors:
        raise errors[0]
    return results[0]
