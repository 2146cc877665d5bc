"""One open connection to one server, to ask it for its tools, to run one, and to answer what it asks.

Above: upstream.py, which owns it, and connecting.py, which opens it. Below: the SDK's session. Answers are handed on as
the JSON objects that came: the SDK refuses a whole listing for one malformed tool, and results that a tolerant reader
can still use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp.types as t
from mcp import ClientSession, MCPError
from mcp.client.subscriptions import listen
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from broker.disclosure.tool_descriptions import SESSION_KEY
from broker.upstreams.back_off import BackOff
from broker.upstreams.http_trail import SESSION_OVER, HttpTrail, SentCall
from broker.upstreams.upstream_requests import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp.shared.dispatcher import CallOptions, ProgressFnT

    from broker.upstreams.child_calls import ChildDispatcher
    from broker.upstreams.child_messages import AwaitedAnswer
    from broker.upstreams.probing import ProbingDispatcher
    from broker.upstreams.upstream_requests import UpstreamRequests

_KEY_CHARACTERS = 256
_REFUSED = t.ErrorData(code=t.INVALID_REQUEST, message="Refused.")


_NO_ANSWER = frozenset({t.CONNECTION_CLOSED, t.INTERNAL_ERROR})
"""What the SDK says where no answer of the protocol came."""


class NotExecutedError(Exception):
    """A call over HTTP that was refused with this status, 401 or 403; None where it was not sent."""

    def __init__(self, status: int | None) -> None:
        """Keep the status."""
        self.status = status
        super().__init__(status)


class AnswerLostError(Exception):
    """A server behind HTTP sent no proper answer; the text says why. What became of the call is unknown."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing: tools or resources as received, the next cursor."""

    entries: Any
    cursor: Any


@dataclass
class Connection:
    """An open connection. `ended` is set, with `reason`, when it can no longer be used.

    Attributes:
        last_words: The last line of a child process that was stopped.
        states_capabilities: Whether the server has said what it has; one whose revision the config names is not asked.
        session_key: What the server has told us to name our session with; empty where it told us nothing.
    """

    on_tools_changed: Callable[[], None]
    on_end: Callable[[], None]
    on_secret: Callable[[str], None]
    on_stray: Callable[[str], None]
    requests: UpstreamRequests
    redact: Callable[[str], str]
    ended: anyio.Event = field(default_factory=anyio.Event)
    reason: str = ""
    last_words: str = ""
    states_capabilities: bool = True
    session_key: str = field(default="", repr=False)
    trail: HttpTrail = field(default_factory=HttpTrail)
    _metas: dict[bool, dict[str, Any]] = field(default_factory=dict)
    _calls: int = 0
    _failing: str = ""
    _session: ClientSession | None = None
    _wire: ProbingDispatcher | None = None

    @property
    def session(self) -> ClientSession:
        """The SDK's session."""
        if self._session is None:
            raise RuntimeError("the connection is not open")
        return self._session

    @property
    def protocol_version(self) -> str:
        """The negotiated revision."""
        return self.session.protocol_version or ""

    @property
    def _dispatcher(self) -> ProbingDispatcher:
        if self._wire is None:
            raise RuntimeError("the connection is not open")
        return self._wire

    def begin(self, session: ClientSession, wire: ProbingDispatcher) -> None:
        """Take the negotiated session, and the dispatcher that carries it."""
        self._session, self._wire = session, wire

    def end(self, reason: str) -> None:
        """Mark the connection as ended; the first reason stays."""
        self.reason = self.reason or reason
        if not self.ended.is_set():
            self.ended.set()
            self.on_end()

    def stopped(self, last_words: str) -> None:
        """Keep the last words of a server that we have ended."""
        self.last_words = last_words

    async def list_page(self, cursor: str | None) -> Page:
        """Ask for one page of tools.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
        """
        return await self._page("tools", cursor)

    @property
    def has_resources(self) -> bool:
        """Whether the server may have resources: it says so, or was not asked."""
        capabilities = self.session.server_capabilities
        return not self.states_capabilities or (capabilities is not None and capabilities.resources is not None)

    async def list_resource_page(self, cursor: str | None) -> Page:
        """Ask for one page of resources.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
        """
        return await self._page("resources", cursor)

    async def _page(self, kind: str, cursor: str | None) -> Page:
        # Not through the session: it validates a page as a whole, however much a server has put there.
        method = f"{kind}/list"
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        options: CallOptions = {}
        self.session._stamp({"method": method, "params": params}, options)  # noqa: SLF001  # no public way
        raw = await self._dispatcher.send_raw_request(method, params, options)
        return Page(raw.get(kind), raw.get("nextCursor"))

    @property
    def repeats_arguments(self) -> bool:
        """Whether calls repeat arguments in headers, where a tool's definition asks for it with x-mcp-header."""
        return self.protocol_version in MODERN_PROTOCOL_VERSIONS

    def repeat_arguments(self, headers: dict[str, dict[tuple[str, ...], str]]) -> None:
        """Take the headers of all tools that have some: by tool and property, as the SDK's `x_mcp_header_map`."""
        self.session._x_mcp_header_maps = headers  # noqa: SLF001  # there is no public way

    def repeat_arguments_of(self, tool: str, headers: dict[tuple[str, ...], str]) -> None:
        """Take the headers of one tool, in place of those that it was listed with."""
        self.session._x_mcp_header_maps[tool] = headers  # noqa: SLF001  # as above

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        on_progress: ProgressFnT | None = None,
        replies: Mapping[str, t.InputResponse] | None = None,
        state: str | None = None,
        *,
        may_ask: bool = False,
        sends: list[SentCall],
    ) -> dict[str, Any]:
        """Send `tools/call` once and return the result as it came, unchecked.

        `replies` and `state` answer the questions that the call was answered with before. `may_ask` tells a server of
        2026-07-28 that there is a person for its questions; older ones are told when they are connected. What HTTP
        shows of the call is added to `sends`.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
            NotExecutedError: It did not let the call in, or could not be reached.
            AnswerLostError: It answered with what is no answer.
        """
        params = self._params(name, arguments)
        if replies is not None:
            answers = {
                key: one.model_dump(by_alias=True, mode="json", exclude_none=True) for key, one in replies.items()
            }
            params["inputResponses"] = answers
        if state is not None:
            params["requestState"] = state
        options: CallOptions = {} if on_progress is None else {"on_progress": on_progress}
        if self.trail.url:
            self._stamp(params, options, may_ask=may_ask)
            return self._without_key(await self._call_over_http(params, options, sends))
        self._note_meta(params, may_ask=may_ask)
        return self._without_key(await self._dispatcher.send_raw_request("tools/call", params, options))

    async def call_at_once(
        self, name: str, arguments: dict[str, Any], *, may_ask: bool
    ) -> Callable[[], Awaitable[dict[str, Any]]] | None:
        """Do the same unless sending takes a wait; return what waits for the result.

        None is a call that has not been sent, and is to be sent by `call_tool`: also for a server that is no child
        process.
        """
        child = self._dispatcher.child
        if child is None:
            return None
        params = self._params(name, arguments)
        self._note_meta(params, may_ask=may_ask)
        awaited = await child.send_at_once("tools/call", params)
        return None if awaited is None else partial(self._result, child, awaited)

    async def _result(self, child: ChildDispatcher, awaited: AwaitedAnswer) -> dict[str, Any]:
        return self._without_key(await child.answer(awaited))

    def _params(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        # Not through the session's models: they would check what is ours, and an answer that is judged elsewhere.
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if self.session_key:
            params["_meta"] = {SESSION_KEY: self.session_key}
        return params

    def _note_meta(self, params: dict[str, Any], *, may_ask: bool) -> None:
        if meta := self._meta_of_calls(may_ask=may_ask):
            params["_meta"] = {**meta, **params.get("_meta", {})}

    def _without_key(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result without the key of our session, which is between the server and us; keep the key."""
        meta = result.get("_meta")
        if not isinstance(meta, dict) or SESSION_KEY not in meta:
            return result
        self._keep_key(meta)
        return {**result, "_meta": {key: one for key, one in meta.items() if key != SESSION_KEY}}

    def _keep_key(self, meta: Mapping[str, Any] | None) -> None:
        key = (meta or {}).get(SESSION_KEY)
        if isinstance(key, str) and 0 < len(key) <= _KEY_CHARACTERS and key.isascii() and key.isprintable():
            self.session_key = key

    def _stamp(self, params: dict[str, Any], options: CallOptions, *, may_ask: bool) -> None:
        """Say in a call which revision we speak, who we are and what we can do; over HTTP in headers too."""
        # There is no public way.
        self.session._stamp({"method": "tools/call", "params": params}, options)  # noqa: SLF001
        if not may_ask:
            _take_back_elicitation(params.get("_meta", {}))

    def _meta_of_calls(self, *, may_ask: bool) -> dict[str, Any]:
        """Return the same for a call without headers: it never changes. Empty where the revision wants none."""
        meta = self._metas.get(may_ask)
        if meta is None:
            params: dict[str, Any] = {}
            self._stamp(params, {}, may_ask=may_ask)
            meta = self._metas[may_ask] = params.get("_meta", {})
        return meta

    async def _call_over_http(
        self, params: dict[str, Any], options: CallOptions, sends: list[SentCall]
    ) -> dict[str, Any]:
        """Send `tools/call` over HTTP; an HTTP error is told apart from an answer of the server."""
        sends.append(sent := SentCall())
        self._calls += 1
        try:
            with self.trail.sending(sent):
                return await self._dispatcher.send_raw_request("tools/call", params, options)
        except MCPError as error:
            if error.code in _NO_ANSWER and not any(one.may_have_acted for one in sends):
                raise NotExecutedError(sent.refused) from None
            if loss := sent.loss(error):
                raise AnswerLostError(loss) from None
            raise
        finally:
            self._calls -= 1
            self._failing = self._failing or self._failure(sent)
            # The answers to calls that were sent before are still to come.
            if self._failing and self._calls == 0:
                self.end(self._failing)

    def _failure(self, sent: SentCall) -> str:
        """Return why no further call can be sent after this one; empty if one can."""
        if sent.has_failed:
            return f"it answered HTTP {sent.refused}" if sent.refused else sent.unread
        # Whatever it says beside that (2025-11-25, basic/transports, session management).
        if sent.status == SESSION_OVER and self.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return "it has ended the session"
        return ""

    async def read_resource(self, uri: str) -> list[str]:
        """Return the texts of a resource.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
        """
        meta: Any = {SESSION_KEY: self.session_key} if self.session_key else None
        result = await self.session.read_resource(uri, meta=meta)
        self._keep_key(result.meta)
        return [one.text for one in result.contents if isinstance(one, t.TextResourceContents)]

    async def watch_tools(self) -> None:
        """Report changed listings on a connection of 2026-07-28 until it ends; older ones notify unasked.

        A stream that its server, or a proxy in front of it, has ended is opened again.
        """
        if self.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        capabilities = self.session.server_capabilities
        if capabilities is None or capabilities.tools is None or not capabilities.tools.list_changed:
            return
        back_off, is_told = BackOff(), False
        while True:
            began = anyio.current_time()
            try:
                # As a call: one that cannot be sent takes no others along.
                with self.trail.sending(SentCall()):
                    async with listen(self.session, tools_list_changed=True) as events:
                        if not events.honored.tools_list_changed:
                            return
                        if is_told:
                            self.on_tools_changed()  # nobody was told of what changed in between
                        is_told = True
                        async for _ in events:
                            self.on_tools_changed()
            except (MCPError, RuntimeError, TimeoutError):
                # A server that offers the notification and refuses the subscription is used without it.
                if not is_told:
                    return
            await back_off.wait(anyio.current_time() - began)

    async def elicit(self, context: Any, params: t.ElicitRequestParams) -> t.ElicitResult | t.ErrorData:
        """Answer a server of an older revision that asks a person; the SDK declares that this may be done."""
        del context
        answer = await self._requested("elicitation/create", params)
        return answer if isinstance(answer, t.ElicitResult | t.ErrorData) else _REFUSED

    async def sample(self, context: Any, params: t.CreateMessageRequestParams) -> t.CreateMessageResult | t.ErrorData:
        """Answer a server of an older revision that asks a model."""
        del context
        answer = await self._requested("sampling/createMessage", params)
        return answer if isinstance(answer, t.CreateMessageResult | t.ErrorData) else _REFUSED

    async def _requested(self, method: str, params: t.RequestParams) -> t.InputResponse | t.ErrorData:
        try:
            asked = params.model_dump(by_alias=True, mode="json", exclude_none=True)
            return await self.requests.pushed(method, asked)
        except RefusedError as error:
            return t.ErrorData(code=t.INVALID_REQUEST, message=f"Refused: {error}.")

    async def on_message(self, message: Any) -> None:
        """Take what the server sends unasked; all but changed listings is dropped."""
        if isinstance(message, t.ToolListChangedNotification):
            self.on_tools_changed()


def _take_back_elicitation(meta: dict[str, Any]) -> None:
    """Change what the connection says of itself for a call during which nobody can be asked."""
    capabilities = meta.get(t.CLIENT_CAPABILITIES_META_KEY)
    if isinstance(capabilities, dict):
        meta[t.CLIENT_CAPABILITIES_META_KEY] = {k: one for k, one in capabilities.items() if k != "elicitation"}
