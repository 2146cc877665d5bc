"""The client of one server behind HTTP, of which a call that fails fails alone.

Above: connecting.py. Below: httpx2, http_trail.py, interim_answers.py. The SDK ends a connection with the first request
that meets an error of the network or of the login, and with it all calls that are on their way, of whatever run.
"""

from __future__ import annotations

from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, Any

import anyio
import httpx2

if TYPE_CHECKING:
    from broker.upstreams.http_trail import HttpTrail


COOKIE_BYTES = 8 * 1024
"""How long the cookies of one connection may be, which go with each of its requests."""


class _Cookies(CookieJar):
    """What a server, or a balancer in front of it, has a connection keep: nothing where that is too long."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        """Take the cookies of an answer."""
        super().extract_cookies(response, request)
        if sum(len(one.name) + len(one.value or "") for one in self) > COOKIE_BYTES:
            self.clear()


class HttpClient(httpx2.AsyncClient):
    """Sends the requests of one connection, seen by its trail."""

    def __init__(self, trail: HttpTrail, **settings: Any) -> None:
        """Take what httpx2's own takes."""
        from broker.upstreams.interim_answers import WatchedNetwork  # noqa: PLC0415  # slow, and few servers need it

        super().__init__(event_hooks=trail.hooks, cookies=_Cookies(), **settings)
        self._trail = trail
        for transport in (self._transport, *self._mounts.values()):
            if isinstance(transport, httpx2.AsyncHTTPTransport):
                # There is no public way to their network.
                pool = transport._pool  # noqa: SLF001
                pool._network_backend = WatchedNetwork(pool._network_backend)  # noqa: SLF001

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request. One of a call that fails gets an answer that is none: whoever waits asks the trail why."""
        try:
            return await super().send(request, **options)
        except Exception as error:
            if not self._trail.note_failed(request, error):
                raise
            return httpx2.Response(httpx2.codes.BAD_GATEWAY, request=request)

    async def exchange(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to an authorization server, to be answered within the time that a server has to be reached.

        Raises:
            httpx2.RequestError: It did not.
        """
        try:
            with anyio.fail_after(self.timeout.connect):
                return await super().send(request, auth=None, follow_redirects=False)
        except TimeoutError:
            raise httpx2.ReadTimeout("", request=request) from None

    async def _send_single_request(self, request: httpx2.Request) -> httpx2.Response:
        # There is no public way to leave it alone: `send` may get new tokens in between.
        with self._trail.waited_for(request):
            return await super()._send_single_request(request)
