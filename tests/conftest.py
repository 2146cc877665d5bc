"""What all tests share: a skip is a failure in CI, where everything a test can need is there."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

import platformdirs
import pytest
from hypothesis import HealthCheck, settings

from sandbox import Sandbox
from sandbox.image_loading import load_image
from tests.fork_server import ForkServer

if TYPE_CHECKING:
    from collections.abc import Generator

# Machines are busy: how long an example takes, or takes to be drawn, says nothing.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="module", params=["asyncio"])
def anyio_backend(request):
    """Tests that run on trio as well override this."""
    return request.param


@pytest.fixture(scope="session", autouse=True)
def image():
    """Compiled once a machine, before any test that has a deadline, and mapped once a session."""
    return load_image()


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory):
    """A process that has imported the broker; None where programs are started as usual."""
    if sys.platform != "linux":
        yield None
        return
    server = ForkServer(tmp_path_factory.mktemp("fork"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def python(fork_server):
    """What others start a Python program with, in front of its file and arguments."""
    return (sys.executable,) if fork_server is None else fork_server.command


@pytest.fixture(scope="module", params=["thread", "process"])
async def sandbox(image, request):
    """One for all tests of a module, as for all runs of a program: what one run breaks would show in those after it."""
    async with Sandbox(cache=image.compiled.parent, isolation=request.param) as sandbox:
        yield sandbox


@pytest.fixture
def data_home(tmp_path):
    """A data folder of the test's own; only the proofs of compiled images are the user's, so that none is compiled."""
    proofs = platformdirs.user_data_path("codemode-broker") / "compiled"
    proofs.mkdir(mode=0o700, parents=True, exist_ok=True)
    own = tmp_path / "data" / "codemode-broker"
    own.mkdir(mode=0o700, parents=True)
    (own / "compiled").symlink_to(proofs)
    return str(own.parent)


@pytest.fixture(scope="module")
def heap_of_its_own():
    """For a module that measures memory or the turns of an event loop, or that collects garbage in each test.

    What other tests left is collected, and the collector passes over what they keep. A process that has run thousands
    of tests holds half a million objects: a walk through them takes half a second, and garbage waits long for one.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One more than there are cores: a fifth of the time a test waits for what it has started."""
    return (yield) + ("PYTEST_XDIST_AUTO_NUM_WORKERS" not in os.environ)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where nothing that a test needs may be missing: {_reason(report)}"
    return report


def _reason(report: pytest.TestReport) -> str:
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
