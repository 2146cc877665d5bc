"""Tells clients of mode `tools` that the listing has changed, in both protocol eras.

Above: app.py. Below: the catalog, and the SDK's subscriptions. Newer clients subscribe. Older ones are told unasked, on
the connection on which they listed last. However many tools change, clients are told once a second at most, and
only when what they would be listed is different.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import anyio
import mcp.types as t
from mcp import MCPError
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from broker.logging import logger
from broker.server.identity import connection_of

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext

    from broker.server.tools_mode import ToolsMode
    from broker.tools.catalog import Catalog

PAUSE_SECONDS = 1.0
SEND_SECONDS = 5.0
"""How long a client may take to read an announcement before it misses that one."""
_MAX_CONNECTIONS = 1_000


class Announcer:
    """Watches a catalog for the clients of one server."""

    def __init__(self, catalog: Catalog, tools: ToolsMode) -> None:
        """Announce nothing before `run`."""
        self._catalog = catalog
        self._tools = tools
        self._bus = InMemorySubscriptionBus()
        self._older: dict[str, Any] = {}
        self._told: str | None = None
        self._listen = ListenHandler(self._bus)

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: t.SubscriptionsListenRequestParams
    ) -> t.SubscriptionsListenResult:
        """Answer `subscriptions/listen`; of all that can be asked for, only changes of the tools are acknowledged."""
        only_tools = t.SubscriptionFilter(tools_list_changed=params.notifications.tools_list_changed)
        return await self._listen(ctx, params.model_copy(update={"notifications": only_tools}))

    def end(self) -> None:
        """End all subscriptions, each with its answer."""
        self._listen.close()

    def note(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Remember a client that was given the listing and cannot subscribe; the first listing starts the watching."""
        if self._told is None:
            self._told = self._fingerprint()
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        name = connection_of(ctx)
        self._older.pop(name, None)
        self._older[name] = ctx.session
        if len(self._older) > _MAX_CONNECTIONS:
            del self._older[next(iter(self._older))]

    async def run(self) -> None:
        """Announce changes until cancelled; those before the first listing, as servers get ready, do not count."""
        while True:
            changed = self._catalog.changed  # taken before looking: what changes after that is not missed
            if self._told is not None and (now := self._fingerprint()) != self._told:
                self._told = now
                await self._tell()
            await changed.wait()
            await anyio.sleep(PAUSE_SECONDS)

    async def _tell(self) -> None:
        await self._bus.publish(ToolsListChanged())
        async with anyio.create_task_group() as tasks:
            for name, session in list(self._older.items()):
                tasks.start_soon(self._tell_one, name, session)

    async def _tell_one(self, name: str, session: Any) -> None:
        try:
            with anyio.move_on_after(SEND_SECONDS):
                await session.send_tool_list_changed()
        except (MCPError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            logger().debug("a client is gone", error=type(error).__name__)
            self._older.pop(name, None)

    def _fingerprint(self) -> str:
        document = json.dumps(self._tools.listed(), sort_keys=True)
        return hashlib.sha256(document.encode("utf-8", "replace")).hexdigest()
