"""Runs that are recorded: a server of this process that logs its calls, and a store on disk."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.server.mcpserver import Image

from broker import Broker, Config, Grant, PolicyConfig
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.keeping.transfer import load
from broker.recordings.settings import RecordingSettings
from broker.store import Store


@pytest.fixture
def anyio_backend():
    """The event loops are told apart by the sandbox's own tests."""
    return "asyncio"


@pytest.fixture
def desk_server(calls, desk_server):
    @desk_server.tool(structured_output=False)
    def draw(name: str) -> list[Any]:
        """Draws a picture."""
        calls.append(("draw", name))
        return [Image(data=b"\x89PNG\r\n\x1a\n" + name.encode(), format="png")]

    @desk_server.tool(structured_output=False)
    async def echo(text: str, times: int = 1) -> str:
        """Returns the text."""
        calls.append(("echo", text))
        return text * times

    return desk_server


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "data" / "broker.sqlite3") as store:
        yield store


@pytest.fixture
def recordings(store):
    with Recordings(store, RecordingSettings()) as recordings:
        yield recordings


@pytest.fixture
def opened(desk_server, store):
    """A broker with the server `desk` that records into the store."""

    @asynccontextmanager
    async def open_broker(*, secrets=(), policy=None, **settings):
        config = Config(recordings=RecordingSettings(**settings), policy=policy or PolicyConfig())
        config._resolved = frozenset(secrets)
        with anyio.fail_after(60):
            async with Broker(config, servers={"desk": desk_server}, store=store) as broker:
                yield broker

    return open_broker


async def execute(broker, script, *allowed, answerer=None):
    """Run a script in a session of its own."""
    session = broker.session(grants=map(Grant, allowed or ["desk.*"]), answerer=answerer)
    return await session.execute_code(script, describe_references=True)


@pytest.fixture
def run(opened):
    """Run a script in a broker of its own, recorded; return its result."""

    async def run(script, *allowed, answerer=None, nothing=False, **settings):
        async with opened(**settings) as broker:
            if nothing:
                return await broker.session(answerer=answerer).execute_code(script, describe_references=True)
            return await execute(broker, script, *allowed, answerer=answerer)

    return run


@pytest.fixture
def recorded(recordings):
    """Read the newest recording."""
    return lambda: load(recordings, recordings.find("last"))


@pytest.fixture
def cut(store, recordings):
    """Leave of the newest recording so many lines, as a process does that is killed then."""

    def cut_after(lines):
        entry = recordings.find("last")
        store.execute("DELETE FROM recording_line WHERE recording = ? AND number >= ?", (entry.id, lines))
        store.execute("UPDATE recording SET state = 'running', owner = 'gone', ended = NULL WHERE id = ?", (entry.id,))
        return recordings.find("last")

    return cut_after


@pytest.fixture
def resume(opened):
    async def resume(run, *allowed, answerer=None, parks=False, policy=None, **how):
        async with opened(policy=policy) as broker:
            session = broker.session(grants=map(Grant, allowed), answerer=answerer, parks=parks)
            return await session.resume(run, **how)

    return resume


@pytest.fixture
def world(request):
    """Return fixtures by name, for tests that need many."""
    return lambda *names: [request.getfixturevalue(name) for name in names]
