"""The client of one server behind HTTP, of which a call that fails fails alone.

Above: connecting.py. Below: httpx2, http_trail.py. The SDK ends a connection with the first request that meets an
error of the network or of the login, and with it all calls that are on their way, of whatever run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

if TYPE_CHECKING:
    from broker.upstreams.http_trail import HttpTrail


class HttpClient(httpx2.AsyncClient):
    """Sends the requests of one connection, seen by its trail."""

    def __init__(self, trail: HttpTrail, **settings: Any) -> None:
        """Take what httpx2's own takes."""
        super().__init__(event_hooks=trail.hooks, **settings)
        self._trail = trail

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request. One of a call that fails gets an answer that is none: whoever waits asks the trail why."""
        try:
            return await super().send(request, **options)
        except Exception as error:
            if not self._trail.note_failed(request, error):
                raise
            return httpx2.Response(httpx2.codes.BAD_GATEWAY, request=request)

    async def _send_single_request(self, request: httpx2.Request) -> httpx2.Response:
        # There is no public way to leave it alone: `send` may get new tokens in between.
        with self._trail.waited_for(request):
            return await super()._send_single_request(request)
