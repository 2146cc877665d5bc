"""Finds the session of a request, and ends those that nobody uses. The SDK makes new objects for each request.

So a session is found, in this order, by the handle that the caller passes; the `Mcp-Session-Id` of a stateful HTTP
connection; the process, for stdio; the authenticated principal. A caller that has none of these is given a handle with
each reply, and passes it on.

Above: app.py, resources.py, connections.py. Below: identity.py, room.py, the sessions of the broker.
"""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from broker.disclosure.tool_descriptions import SESSION_KEY
from broker.room import gives_way
from broker.server.identity import SESSION_HEADER, principal_of_request
from broker.texts import tool_texts
from broker.upstreams.used_servers import noting_use

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from mcp.server import ServerRequestContext

    from broker.sessions import Session

NEW = "new"
"""What a caller passes as `session` to begin another one."""

_HANDLE_BEGINS = "s_"

SWEEP_SECONDS = 600.0
"""How often all sessions are looked at, for those that nobody has used for long."""


class NoSessionError(Exception):
    """A request belongs to no session; the text tells its caller what to do."""


class UnknownSessionError(NoSessionError):
    """The handle is of no session of this principal."""

    def __init__(self, handle: str) -> None:
        """Say which handle."""
        super().__init__(tool_texts.unknown_session(handle))


class TooManySessionsError(NoSessionError):
    """No room for one more session."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__(tool_texts.TOO_MANY_SESSIONS)


@dataclass(slots=True)
class HeldSession:
    """A session with what is known about its holder.

    Attributes:
        session: Its descriptions and grants.
        principal: Who was authenticated when it began; empty where nobody is.
        handle: What its holder passes to name it; None where the transport does.
        users: Requests that work in it now.
        used_at: When it was last in use, on the clock of the keeper.
        servers: The lazy servers that were used in it.
        is_over: Whether its client has ended it while a request worked in it.
    """

    session: Session
    principal: str
    handle: str | None
    users: int = 0
    used_at: float = 0.0
    servers: set[str] = field(default_factory=set)
    is_over: bool = False

    @property
    def is_busy(self) -> bool:
        """Whether a request works in it."""
        return self.users > 0


class SessionKeeper:
    """All sessions of a server."""

    def __init__(
        self,
        make_session: Callable[[str], Session],
        *,
        most: int,
        idle_seconds: float,
        rest: Callable[[Collection[str]], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the session of a principal with `make_session`; drop idle ones, and one more when `most` are held.

        `rest` disconnects the lazy servers that were used in sessions which have ended, and in no other. `clock` tells
        seconds that only go forward; `sweep_regularly` goes by the event loop's.
        """
        self._make_session = make_session
        self._rest = rest
        self._clock = clock
        self._most = most
        self._idle_seconds = idle_seconds
        self._held: dict[str, HeldSession] = {}
        self._swept_at = 0.0

    def __len__(self) -> int:
        """Count the sessions."""
        return len(self._held)

    def is_busy(self, principal: str, connection: str) -> bool:
        """Tell whether a request works in the session of a connection."""
        held = self._held.get(_connection_key(principal, connection))
        return held is not None and held.is_busy

    @contextmanager
    def using(
        self, ctx: ServerRequestContext[Any, Any], handle: Any, *, or_new: bool = False
    ) -> Iterator[tuple[HeldSession, str | None]]:
        """Yield the session of a request, and its handle where that is new to the caller; it is in use for the block.

        Args:
            ctx: The request.
            handle: The handle that it passes; anything but a text counts as none.
            or_new: Whether to begin a session if the handle is unknown.

        Raises:
            NoSessionError: It has no session, and none can be begun.
        """
        handle = handle if isinstance(handle, str) else None
        try:
            held, is_new = self._find(ctx, handle)
        except UnknownSessionError:
            if not or_new:
                raise
            held, is_new = self._find(ctx, NEW)
        held.users += 1
        try:
            with noting_use(held.servers):
                yield held, held.handle if is_new else None
        finally:
            held.users -= 1
            self._touch(held)
            if held.is_over:
                self._end(key for key, one in list(self._held.items()) if one is held and not held.is_busy)

    def end(self, principal: str, connection: str) -> None:
        """End the session of a connection that has ended, at once or with the last request that works in it."""
        key = _connection_key(principal, connection)
        held = self._held.get(key)
        if held is not None:
            held.is_over = True
            self._end([] if held.is_busy else [key])

    def passed(self, ctx: ServerRequestContext[Any, Any]) -> str | None:
        """Return the handle that a request's `_meta` passes.

        None where it is of no session of this principal any more: the program that passed it is then told of another
        session in its answer, as one that passed nothing.
        """
        handle = (ctx.meta or {}).get(SESSION_KEY)
        if not isinstance(handle, str):
            return None
        held = self._held.get(handle)
        is_held = held is not None and held.handle == handle and held.principal == principal_of_request()
        return handle if is_held or handle == NEW else None

    def begin(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Begin the session of a request, unless it has one or only a handle could name it, or there is no room."""
        if _key(ctx, principal_of_request()) is not None:
            with suppress(NoSessionError), self.using(ctx, None):
                pass

    async def sweep_regularly(self) -> None:
        """Drop the sessions that nobody has used for long, also while no request comes; until cancelled."""
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            self.sweep()

    def sweep(self) -> None:
        """Drop the sessions that nobody has used for long, and in which no request works."""
        now = self._swept_at = self._clock()
        oldest = now - self._idle_seconds
        self._end(key for key, held in list(self._held.items()) if not held.is_busy and held.used_at <= oldest)

    def _end(self, keys: Iterable[str]) -> None:
        ended = [self._held.pop(key) for key in keys]
        used = {server for held in ended for server in held.servers}
        if used and (unused := used.difference(*(held.servers for held in self._held.values()))):
            self._rest(unused)

    def _find(self, ctx: ServerRequestContext[Any, Any], handle: str | None) -> tuple[HeldSession, bool]:
        """Return the session of a request, and whether its handle is new to the caller.

        Raises:
            UnknownSessionError: The handle is of no session of this principal.
            TooManySessionsError: A new one is needed, there is no room, and none can give way.
        """
        if self._clock() - self._swept_at >= min(SWEEP_SECONDS, self._idle_seconds):
            self.sweep()
        principal = principal_of_request()
        if handle is not None and handle != NEW:
            held = self._held.get(handle)
            if held is None or held.handle != handle or held.principal != principal:
                raise UnknownSessionError(handle)
            return self._touch(held), False
        key = None if handle == NEW else _key(ctx, principal)
        if key is None:
            handle = f"{_HANDLE_BEGINS}{secrets.token_hex(8)}"
            return self._begin(handle, principal, handle), True
        return self._touch(self._held[key]) if key in self._held else self._begin(key, principal, None), False

    def _begin(self, key: str, principal: str, handle: str | None) -> HeldSession:
        if len(self._held) >= self._most:
            self.sweep()
        if len(self._held) >= self._most:
            leaving = gives_way(self._held, principal)
            if leaving is None:
                raise TooManySessionsError
            self._end([leaving])
        self._held[key] = HeldSession(self._make_session(principal), principal, handle)
        return self._touch(self._held[key])

    def _touch(self, held: HeldSession) -> HeldSession:
        held.used_at = self._clock()
        return held


def handle_in(argument: Any) -> str | None:
    """Return the handle that a model passes as `session`; None for what cannot be one, as "main" or "".

    Models invent such names. Ignoring them is safe: only we make handles, and none can be guessed.
    """
    is_handle = isinstance(argument, str) and (argument == NEW or argument.startswith(_HANDLE_BEGINS))
    return argument if is_handle else None


def _key(ctx: ServerRequestContext[Any, Any], principal: str) -> str | None:
    if ctx.request is None:
        return "process"
    # In the newer era the header means nothing, and anybody could send one.
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        session_id = ctx.request.headers.get(SESSION_HEADER)
        if session_id is not None:
            return _connection_key(principal, session_id)
    return f"principal {principal}" if principal else None


def _connection_key(principal: str, session_id: str) -> str:
    return f"http {principal} {session_id}"
