"""Guests are asked at each tick, and a process in which none runs is left in peace."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox import ticker as ticker_module
from sandbox.ticker import Ticker

SECONDS = 10
HOST = """
import threading
import anyio
from sandbox import Sandbox

async def main():
    async with Sandbox(isolation={isolation!r}) as sandbox:
        result = await sandbox.run("sum(range(10))")
        print(result.outcome.value, "wasm-epochs" in [thread.name for thread in threading.enumerate()])

anyio.run(main)
"""


class Ticks:
    """What a ticker has called."""

    def __init__(self):
        self._news = threading.Condition()
        self.count = 0

    def __call__(self):
        with self._news:
            self.count += 1
            self._news.notify_all()

    def come(self, most):
        """Wait for so many more, and tell whether they came."""
        with self._news:
            wanted = self.count + most
            return bool(self._news.wait_for(lambda: self.count >= wanted, SECONDS))


@pytest.fixture
def hasty(monkeypatch):
    """Ticks follow each other at once, and one without a guest is the last."""
    monkeypatch.setattr(ticker_module, "TICK_SECONDS", 0)
    monkeypatch.setattr(ticker_module, "IDLE_TICKS", 1)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize(("isolation", "ticks"), [("process", False), ("thread", True)])
def test_a_host_ticks_only_if_guests_run_in_it(isolation, ticks):
    command = [sys.executable, "-c", HOST.format(isolation=isolation)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # our own interpreter
    assert finished.stdout == f"45 {ticks}\n"


def test_it_ticks_as_long_as_a_guest_runs_and_again_for_the_next():
    ticks = Ticks()
    ticker = Ticker(ticks)
    for guest in (1, 2):
        ticker.begin(guest)
        assert ticks.come(3)
        ticker.end(guest)


@pytest.mark.usefixtures("hasty")
def test_it_ticks_on_for_a_guest_that_runs_longer_than_it_would_wait_for_one():
    ticks = Ticks()
    ticker = Ticker(ticks)
    ticker.begin("long")
    assert ticks.come(100)
    ticker.begin("short")
    ticker.end("short")
    assert ticks.come(100)
    ticker.end("long")


@pytest.mark.usefixtures("hasty")
def test_it_sleeps_when_none_has_run_for_a_while():
    asleep = threading.Event()
    ticks = Ticks()
    ticker = Ticker(ticks)
    wait = ticker._wanted.wait

    def waits() -> bool:
        asleep.set()
        return wait()

    ticker._wanted.wait = waits  # type: ignore[method-assign, assignment]  # where it sleeps
    for _ in range(3):
        ticker.begin("guest")
        assert ticks.come(1)
        asleep.clear()
        ticker.end("guest")
        assert asleep.wait(SECONDS)
        assert ticker._is_asleep


@pytest.mark.usefixtures("hasty")
def test_no_guest_is_forgotten_that_begins_while_it_falls_asleep():
    ticks = Ticks()
    ticker = Ticker(ticks)

    def run(guest: int) -> bool:
        ticker.begin(guest)
        has_ticked: bool = ticks.come(1)
        ticker.end(guest)
        return has_ticked

    with ThreadPoolExecutor(2) as guests:
        assert all(guests.map(run, range(3_000)))


def test_a_guest_does_not_run_where_no_thread_can_be_started(monkeypatch):
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ticks = Ticks()
    ticker = Ticker(ticks)
    with monkeypatch.context() as shortage:
        shortage.setattr(threading.Thread, "start", start)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="new thread"):
                ticker.begin("refused")
    ticker.begin("guest")
    assert ticks.come(1)
    ticker.end("guest")
