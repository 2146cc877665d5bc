"""What clients read: the rest of an output that was too long for its reply, and descriptions of tools.

Above: app.py. Below: the kept outputs of the surface, and tools_mode.py, which has the descriptions in either mode.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mcp.types as t
from mcp import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from broker.disclosure import tool_descriptions
from broker.disclosure.tool_descriptions import SESSION_KEY
from broker.server.identity import principal_of_request
from broker.server.session_keeper import NoSessionError, handle_in
from broker.surface.outputs import TEMPLATE
from broker.texts import tool_texts

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext

    from broker.disclosure.tool_descriptions import Selection
    from broker.server.session_keeper import SessionKeeper
    from broker.server.tools_mode import ToolsMode
    from broker.surface import KeptOutputs

NOT_FOUND_BEFORE_2026 = -32002


def check_first_page(params: t.PaginatedRequestParams | None) -> None:
    """Refuse all pages but the first of a list that has one (server/utilities/pagination of the specification).

    Raises:
        MCPError: There is a cursor.
    """
    if params is not None and params.cursor is not None:
        raise MCPError(t.INVALID_PARAMS, tool_texts.ONE_PAGE)


class Resources:
    """The resources of one server. Its methods answer the requests of their names."""

    def __init__(self, tools: ToolsMode, outputs: KeptOutputs, sessions: SessionKeeper) -> None:
        """Read descriptions of `tools`, which describes them to one of the sessions, and `outputs`."""
        self._tools = tools
        self._outputs = outputs
        self._sessions = sessions

    async def list(
        self, _ctx: ServerRequestContext[Any, Any], params: t.PaginatedRequestParams | None
    ) -> t.ListResourcesResult:
        """Answer `resources/list`: the descriptions. An output is named in its reply.

        Raises:
            MCPError: There is a cursor.
        """
        check_first_page(params)
        return t.ListResourcesResult(
            resources=[t.Resource.model_validate(tool_descriptions.resource(self._tools.workflow))]
        )

    async def list_templates(
        self, _ctx: ServerRequestContext[Any, Any], params: t.PaginatedRequestParams | None
    ) -> t.ListResourceTemplatesResult:
        """Answer `resources/templates/list`.

        Raises:
            MCPError: There is a cursor.
        """
        check_first_page(params)
        output = t.ResourceTemplate(
            uri_template=TEMPLATE, name="run_output", description=tool_texts.OUTPUT_RESOURCE, mime_type="text/plain"
        )
        descriptions = t.ResourceTemplate(
            uri_template=tool_descriptions.TEMPLATE,
            name=tool_descriptions.RESOURCE_NAME,
            description=self._tools.workflow,
            mime_type=tool_descriptions.MIME_TYPE,
        )
        return t.ListResourceTemplatesResult(resource_templates=[output, descriptions])

    async def read(
        self, ctx: ServerRequestContext[Any, Any], params: t.ReadResourceRequestParams
    ) -> t.ReadResourceResult:
        """Answer `resources/read`.

        Raises:
            MCPError: There is no such resource for this client.
        """
        try:
            selection = tool_descriptions.selection_of(params.uri)
            page = None if selection is not None else self._outputs.read(params.uri, principal_of_request())
        except ValueError as error:
            raise MCPError(t.INVALID_PARAMS, str(error)) from None
        if selection is not None:
            return await self._read_descriptions(ctx, params.uri, selection)
        if page is None:
            is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = t.INVALID_PARAMS if is_modern else NOT_FOUND_BEFORE_2026
            raise MCPError(code, tool_texts.no_resource(params.uri), {"uri": params.uri})
        contents = t.TextResourceContents(uri=params.uri, mime_type="text/plain", text=page)
        return t.ReadResourceResult(contents=[contents])

    async def _read_descriptions(
        self, ctx: ServerRequestContext[Any, Any], uri: str, selection: Selection
    ) -> t.ReadResourceResult:
        handle = handle_in(selection.session) or self._sessions.passed(ctx)
        try:
            with self._sessions.using(ctx, handle) as (held, new):
                document = await self._tools.read(held.session, selection)
        except NoSessionError as error:
            raise MCPError(t.INVALID_PARAMS, str(error)) from None
        text = json.dumps(document, ensure_ascii=False)
        contents = t.TextResourceContents(uri=uri, mime_type=tool_descriptions.MIME_TYPE, text=text)
        return t.ReadResourceResult(contents=[contents], _meta={SESSION_KEY: new} if new is not None else None)
