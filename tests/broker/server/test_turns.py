"""Whose run begins next, and whose is refused."""

from __future__ import annotations

import anyio
import pytest

from broker.server.runs import NoRoomError, Runs
from broker.server.turns import Turns

pytestmark = pytest.mark.anyio


class Waiting:
    """Those who want a turn, one task each; who has one keeps it until it is told to end it."""

    def __init__(self, tasks, turns):
        self.given: list[str] = []
        self._tasks = tasks
        self._turns = turns
        self._ends: list[anyio.Event] = []

    async def come(self, *principals):
        scopes = []
        for principal in principals:
            scopes.append(scope := anyio.CancelScope())
            self._tasks.start_soon(self._have, principal, scope)
            await anyio.wait_all_tasks_blocked()
        return scopes

    async def end(self, count):
        for _ in range(count):
            self._ends.pop(0).set()
            await anyio.wait_all_tasks_blocked()

    async def _have(self, principal, scope):
        with scope:
            async with self._turns.turn(principal):
                self.given.append(principal)
                self._ends.append(end := anyio.Event())
                await end.wait()


CASES = {
    "of one principal in their order": (1, ["a", "a", "a"], ["a", "a", "a"]),
    "in turn where one is given at a time": (1, ["b", "b", "b", "b", "a", "a"], ["b", "a", "b", "a", "b", "b"]),
    "to whoever has fewest": (3, ["b", "b", "b", "b", "b", "a", "a"], ["b", "b", "b", "a", "b", "a", "b"]),
    "to whoever has fewest and had one last": (4, ["b", "b", "b", "a", "b", "a"], ["b", "b", "b", "a", "a", "b"]),
    "to each of many": (1, ["b", "b", "b", "a", "c"], ["b", "a", "c", "b", "b"]),
}


@pytest.mark.parametrize("case", CASES)
async def test_turns_are_given(case):
    at_once, come, given = CASES[case]
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            waiting = Waiting(tasks, Turns(at_once))
            await waiting.come(*come)
            assert len(waiting.given) == at_once
            await waiting.end(len(come))
    assert waiting.given == given


async def test_a_turn_of_somebody_who_is_gone_is_the_next_ones():
    turns = Turns(1)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            waiting = Waiting(tasks, turns)
            first, second, third = await waiting.come("a", "b", "c")
            second.cancel()
            await anyio.wait_all_tasks_blocked()
            # Given its turn and cancelled at the same moment, before it can begin.
            first.cancel()
            third.cancel()
            await anyio.wait_all_tasks_blocked()
            await waiting.come("d")
            await waiting.end(2)
    assert waiting.given == ["a", "d"]


async def test_runs_of_one_principal_keep_out_none_of_the_others():
    ended: list[str] = []
    runs = Runs(at_once=1, waiting=3)
    go_on = anyio.Event()

    async def work(_live):
        await go_on.wait()

    async def wait(name, principal):
        try:
            await runs.perform(work, principal)
            ended.append(name)
        except NoRoomError:
            ended.append(f"no {name}")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for name, principal in (("b1", "b"), ("b2", "b"), ("b3", "b"), ("b4", "b"), ("b5", "b"), ("a1", "a")):
                tasks.start_soon(wait, name, principal)
                await anyio.wait_all_tasks_blocked()
            go_on.set()
    assert ended == ["no b5", "no b4", "b1", "a1", "b2", "b3"]
