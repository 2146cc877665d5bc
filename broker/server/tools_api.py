"""The tiers of tools over plain HTTP: `GET /api/v1/tools/…`, behind the authentication of the MCP endpoint.

Above: http.py. Below: the broker's tiers. A read describes nothing to any session; it shows what the budgets allow. One
tool is shown with its full definition, which its server may be connected and asked for: that is one of its caller's
fetches of descriptions. The lazy servers of a category are connected when its tools are read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import RequireAuthMiddleware
from mcp.server.transport_security import TransportSecurityMiddleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response

from broker.errors import SearchError, UnavailableError, UnknownToolError
from broker.server.identity import principal_of_request
from broker.server.tools_mode import SETTLE_SECONDS
from broker.texts import description_texts
from broker.tiers import token_counter
from broker.tiers.pages import compact
from broker.tiers.tiers import no_number

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.requests import Request

    from broker.broker import Broker
    from broker.tiers import TierPage

PREFIX = "/api/v1/tools"

_NUMBER_DIGITS = 9
_NO_SLASH = "There is nothing at this path. Write it without the slash at its end."
_NO_TOOL = f"There is nothing at this path. Name a tool, as in {PREFIX}/SERVER/TOOL."


class _NotFoundError(Exception):
    """There is nothing of this name; `args[0]` says what there is."""


class _TooManyFetchesError(Exception):
    """The caller has fetched too many definitions; `args[0]` says how many seconds to wait."""


def tools_routes(broker: Broker, security: TransportSecuritySettings, scopes: Sequence[str] | None) -> list[Route]:
    """Return the routes; with scopes, a request needs a token that has them, without nobody is asked who they are."""
    api = _Api(broker)
    guard = TransportSecurityMiddleware(security)

    def route(path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
        async def guarded(request: Request) -> Response:
            if refused := await guard.validate_request(request):
                return refused
            await broker.wait_until_settled(SETTLE_SECONDS)
            await anyio.to_thread.run_sync(token_counter)  # takes a second the first time
            return await _told(answer, request)

        endpoint: Any = guarded
        if scopes is not None:
            endpoint = RequireAuthMiddleware(request_response(guarded), list(scopes))
        return Route(PREFIX + path, endpoint, methods=["GET"])

    return [
        route("/hot", api.hot),
        route("/categories", api.categories),
        route("/category/{name:path}", api.category),
        route("/{server}/{tool:path}", api.tool),
    ]


async def _told(answer: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
    try:
        return await answer(request)
    except SearchError as error:
        return JSONResponse({"error": str(error)}, status_code=400)
    except _NotFoundError as error:
        return JSONResponse({"error": str(error)}, status_code=404)
    except UnavailableError as error:
        return JSONResponse({"error": str(error)}, status_code=503)
    except _TooManyFetchesError as error:
        seconds = math.ceil(error.args[0])
        said = f"{description_texts.fetched_too_often(seconds)}."
        return JSONResponse({"error": said}, status_code=429, headers={"Retry-After": str(seconds)})


class _Api:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def hot(self, request: Request) -> Response:
        return _page(self._broker.tiers.hot(request.query_params.get("cursor")))

    async def categories(self, request: Request) -> Response:
        return _page(self._broker.tiers.categories(request.query_params.get("cursor")))

    async def category(self, request: Request) -> Response:
        name = request.path_params["name"]
        await self._broker.wake_category(name)
        if name not in self._broker.categories.members():
            return await self._tool_of_category(name)
        numbers = {
            key: _number(key, request.query_params[key]) for key in ("page", "page_size") if key in request.query_params
        }
        cursor = request.query_params.get("cursor")
        return _page(await self._broker.tiers.read_summaries(name, **numbers, cursor=cursor))

    async def _tool_of_category(self, name: str) -> Response:
        """Answer at the path of a category with a tool, where a server is called `category`."""
        tool = f"category.{name}"
        if name.startswith("category.") and self._broker.catalog.find(tool) is None:
            tool = name
        try:
            if self._broker.catalog.server_of("category") is not None:
                return await self._definition(tool)
        except UnknownToolError:
            pass
        raise _NotFoundError(self._broker.categories.unknown(name))

    async def tool(self, request: Request) -> Response:
        if not request.path_params["tool"]:
            is_page = request.path_params["server"] in {"hot", "categories"}
            raise _NotFoundError(_NO_SLASH if is_page else _NO_TOOL)
        name = f"{request.path_params['server']}.{request.path_params['tool']}"
        try:
            return await self._definition(name)
        except UnknownToolError as error:
            raise _NotFoundError(str(error)) from None

    async def _definition(self, name: str) -> Response:
        if (wait := self._broker.serving.take_fetch(principal_of_request())) > 0:
            raise _TooManyFetchesError(wait)
        page = self._broker.tiers.full([await self._broker.read_tool(name)])
        (item,) = page.items
        return _counted(item, self._broker.tiers.counter.count(compact(item)), page)


def _number(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS):
        raise no_number(key, text)
    return int(text)


def _page(page: TierPage) -> Response:
    return _counted(page.to_json(), page.tokens, page)


def _counted(document: dict[str, Any], tokens: int, page: TierPage) -> Response:
    headers = {"Tokens": str(tokens), "Token-Budget": str(page.budget), "Token-Counter": page.counted_by}
    return JSONResponse(document, headers=headers)
