"""Announcements of changed listings, without connections."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from broker.server import announcing as module
from broker.server.announcing import Announcer

pytestmark = pytest.mark.anyio


async def test_a_client_that_does_not_read_keeps_no_other_from_being_told(monkeypatch):
    monkeypatch.setattr(module, "SEND_SECONDS", 0.01)
    told = []

    async def never():
        await anyio.sleep_forever()

    async def reads():
        told.append(1)

    announcer = Announcer(cast("Any", None), cast("Any", None))
    for name, send in (("stuck", never), ("reading", reads)):
        ctx: Any = SimpleNamespace(
            protocol_version="2025-11-25",
            request=SimpleNamespace(headers={"mcp-session-id": name}),
            session=SimpleNamespace(send_tool_list_changed=send),
        )
        announcer.note(ctx)
    with anyio.fail_after(10):
        await announcer._tell()
        await announcer._tell()
    assert told == [1, 1]
