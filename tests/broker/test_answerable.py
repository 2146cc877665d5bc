"""What is answered once, by whoever comes first."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from broker.answerable import Answerable

pytestmark = pytest.mark.anyio


async def test_the_first_answer_counts_for_all_who_wait():
    asked: Answerable[str] = Answerable()
    heard: list[str] = []

    async def wait() -> None:
        heard.append(await asked.answer())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            tasks.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            assert (asked.is_answered, heard) == (False, [])
            assert [asked.reply("yes"), asked.reply("no")] == [True, False]
        assert (asked.is_answered, heard, await asked.answer()) == (True, ["yes", "yes"], "yes")


async def test_an_answer_from_another_thread_is_refused_and_the_request_stays_open():
    asked: Answerable[str] = Answerable()
    with pytest.raises(RuntimeError, match=r"loop\.call_soon_threadsafe"):
        await anyio.to_thread.run_sync(asked.reply, "yes")
    assert not asked.is_answered
    assert asked.reply("yes")
