"""How far a server is, and who waits for it: decided without a connection."""

from __future__ import annotations

import anyio
import pytest

from broker.upstreams import readiness
from broker.upstreams.explain import Explanation
from broker.upstreams.readiness import Readiness

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

DOWN = Explanation("it exited", "look at its log")


def lazy() -> Readiness:
    return Readiness(is_disabled=False, is_lazy=True)


async def wait_for(one: Readiness, then) -> str:
    """Need a server, and return its state once the wait is over; `then` happens while it lasts."""
    states = []

    async def need() -> None:
        one.want()
        await one.settled()
        states.append(one.state)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(need)
        await anyio.wait_all_tasks_blocked()
        assert states == []
        then()
    return states[0]


@pytest.mark.parametrize(
    ("is_disabled", "is_lazy", "state", "is_wanted"),
    [
        (False, False, "connecting", True),
        (False, True, "asleep", False),
        (True, False, "disabled", True),
        (True, True, "disabled", False),
    ],
)
async def test_a_server_begins_as_its_config_says(is_disabled, is_lazy, state, is_wanted):
    one = Readiness(is_disabled=is_disabled, is_lazy=is_lazy)
    assert (one.state, one.is_wanted) == (state, is_wanted)


async def test_whoever_needs_a_sleeping_server_waits_until_it_is_ready():
    assert await wait_for(one := lazy(), one.become_ready) == "ready"


async def test_whoever_needs_a_server_that_fails_is_told_so_at_once_and_for_a_while(monkeypatch):
    one = lazy()
    assert await wait_for(one, lambda: one.fail(DOWN, was_ready=False)) == "down"
    assert one.fall_asleep(was_ready=False)
    one.want()
    await one.settled()
    assert (one.state, one.explanation, one.is_wanted) == ("down", DOWN, False)
    monkeypatch.setattr(readiness, "RETRY_SECONDS", 0)
    assert await wait_for(one, one.become_ready) == "ready"
    assert one.explanation is None


async def test_a_server_that_rests_sleeps_without_an_explanation_unless_it_is_needed_meanwhile():
    for is_needed in (False, True):
        one = lazy()
        await wait_for(one, one.become_ready)
        one.rest()
        one.lose()
        one.fail(DOWN, was_ready=True)
        if is_needed:
            assert await wait_for(one, one.become_ready) == "ready"
        assert one.fall_asleep(was_ready=True) != is_needed
        assert one.explanation is None


async def test_a_server_that_is_not_lazy_never_sleeps():
    one = Readiness(is_disabled=False, is_lazy=False)
    one.fail(DOWN, was_ready=False)
    assert not one.fall_asleep(was_ready=False)
    assert one.is_wanted


async def test_who_waits_for_a_lost_server_waits_for_its_next_connection():
    one = Readiness(is_disabled=False, is_lazy=False)
    one.become_ready()
    one.lose()
    assert await wait_for(one, one.become_ready) == "ready"


async def test_nobody_waits_for_a_server_that_is_not_connected_again():
    assert await wait_for(one := lazy(), one.end) == "stopped"
