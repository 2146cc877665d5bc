"""The tools of one server as it listed them last. They are listed on each connection, and when they have changed.

Above: upstream.py. Below: listing.py, remote_descriptions.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from mcp import MCPError
from mcp.types import METHOD_NOT_FOUND
from pydantic import ValidationError

from broker.errors import ReplyError, UnavailableError
from broker.logging import logger
from broker.upstreams.listing import Listing, list_tools
from broker.upstreams.remote_descriptions import RemoteDescriptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.upstreams.connection import Connection
    from broker.upstreams.server_config import ServerConfig
    from codegen import ToolSpec

_LEAST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 60.0
_PAUSE_FACTOR = 4


class ListedTools:
    """What one server offers, over all of its connections.

    Attributes:
        listing: As it was last.
        descriptions: What the server was asked to describe, where it lists a line each.
    """

    def __init__(self, server: str, settings: ServerConfig, on_listing: Callable[[str, Listing], None]) -> None:
        """Start with none; `on_listing` is called with the server's name whenever they have been listed."""
        self.listing = Listing((), ())
        self.descriptions = RemoteDescriptions(server, settings, self.note_change)
        self._server = server
        self._settings = settings
        self._on_listing = on_listing
        self._changed = anyio.Event()

    def note_change(self) -> None:
        """Let the tools be listed again, because the server said so or a tool was found to be different."""
        self._changed.set()

    async def refresh(self, connection: Connection) -> None:
        """List them on a connection.

        Raises:
            ReplyError: A page is not a listing.
            MCPError: The server answered with an error, or the connection ended.
        """
        try:
            listing = await list_tools(connection, self._server, self._settings)
        except MCPError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            listing = Listing((), ("it offers no tools",))
        self.listing = await self.descriptions.complete(connection, listing)
        for problem in self.listing.problems:
            logger().warning("listing", server=self._server, problem=problem)
        self._on_listing(self._server, self.listing)

    async def refresh_when_changed(self, connection: Connection) -> None:
        """List again after a change, at most once a second however many changes are announced; until cancelled.

        A listing that took long is followed by a pause four times as long, a minute at most.
        """
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            began = anyio.current_time()
            try:
                with anyio.fail_after(self._settings.connect_timeout_seconds):
                    await self.refresh(connection)
            except (MCPError, ReplyError, TimeoutError, ValidationError, RuntimeError) as error:
                logger().warning("listing failed", server=self._server, error=type(error).__name__)
            await anyio.sleep(_pause_after(anyio.current_time() - began))

    async def describe(self, connection: Connection, names: Sequence[str]) -> list[ToolSpec]:
        """Return the full definitions of tools that were listed with a line each, as far as they can be read.

        Raises:
            UnavailableError: The server did not say, or not in time.
        """
        try:
            with anyio.fail_after(self._settings.call_timeout_seconds):
                return await self.descriptions.read(connection, names)
        except TimeoutError:
            raise UnavailableError(self._server, f"{self._server} did not describe its tools in time.") from None
        except (MCPError, ValueError, RuntimeError) as error:  # also of an address that cannot be sent
            logger().warning("descriptions failed", server=self._server, error=type(error).__name__)
            raise UnavailableError(self._server, f"{self._server} did not describe its tools.") from None


def _pause_after(seconds: float) -> float:
    """Return how long no listing follows one that took so long: to read it may be much of what the broker does."""
    return min(max(_PAUSE_FACTOR * seconds, _LEAST_PAUSE_SECONDS), _MAX_PAUSE_SECONDS)
