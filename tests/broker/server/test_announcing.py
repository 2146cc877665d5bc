"""Announcements of changed listings, without connections."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from broker.server import announcing as module
from broker.server.announcing import Announcer

pytestmark = pytest.mark.anyio


def request_of(name, send) -> Any:
    """A request of the older era for the listing."""
    return SimpleNamespace(
        protocol_version="2025-11-25",
        request=SimpleNamespace(headers={"mcp-session-id": name}),
        session=SimpleNamespace(send_tool_list_changed=send),
    )


async def test_what_the_first_client_was_listed_is_no_change(monkeypatch):
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0)
    listing: list[str] = []
    catalog = SimpleNamespace(changed=anyio.Event())
    told = []

    def change(tool):
        listing.append(tool)
        before, catalog.changed = catalog.changed, anyio.Event()
        before.set()

    async def send():
        told.append(list(listing))

    announcer = Announcer(cast("Any", catalog), cast("Any", SimpleNamespace(listed=lambda: listing)))
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(announcer.run)
            await anyio.wait_all_tasks_blocked()
            change("of a server that gets ready")
            announcer.note(request_of("one", send))
            await anyio.wait_all_tasks_blocked()
            change("of another server")
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert told == [["of a server that gets ready", "of another server"]]


async def test_a_client_that_does_not_read_keeps_no_other_from_being_told(monkeypatch):
    monkeypatch.setattr(module, "SEND_SECONDS", 0.01)
    told = []

    async def never():
        await anyio.sleep_forever()

    async def reads():
        told.append(1)

    announcer = Announcer(cast("Any", None), cast("Any", SimpleNamespace(listed=list)))
    for name, send in (("stuck", never), ("reading", reads)):
        announcer.note(request_of(name, send))
    with anyio.fail_after(10):
        await announcer._tell()
        await announcer._tell()
    assert told == [1, 1]
