"""The upstream that the conformance suites expect behind a server: tools that answer as their scenarios say."""

from __future__ import annotations

import asyncio
import base64

import mcp.types as t
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = base64.b64encode(b"RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00" + bytes(20)).decode()
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
NOTHING = {"type": "object", "properties": {}}


def text(said: str) -> t.TextContent:
    return t.TextContent(type="text", text=said)


def image() -> t.ImageContent:
    return t.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri: str, said: str, mime_type: str) -> t.EmbeddedResource:
    contents = t.TextResourceContents(uri=uri, mime_type=mime_type, text=said)
    return t.EmbeddedResource(type="resource", resource=contents)


RESULTS: dict[str, list[t.ContentBlock]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image()],
    "test_audio_content": [t.AudioContent(type="audio", data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [
        embedded("test://embedded-resource", "This is an embedded resource content.", "text/plain")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ],
    "json_schema_2020_12_tool": [text("ok")],
    "test_tool_with_progress": [text("done")],
    "test_tool_with_logging": [text("done")],
}


async def list_tools(_ctx, _params) -> t.ListToolsResult:
    names = [*RESULTS, "test_error_handling"]
    tools = [
        t.Tool(
            name=name,
            description=f"The tool of the scenario {name}.",
            input_schema=SCHEMA_2020 if name == "json_schema_2020_12_tool" else NOTHING,
        )
        for name in names
    ]
    return t.ListToolsResult(tools=tools)


async def call_tool(ctx, params: t.CallToolRequestParams) -> t.CallToolResult:
    if params.name == "test_error_handling":
        said = "This tool intentionally returns an error for testing"
        return t.CallToolResult(content=[text(said)], is_error=True)
    if params.name == "test_tool_with_progress":
        for done in (0, 50, 100):
            await ctx.session.report_progress(done, 100, f"{done} of 100")
    return t.CallToolResult(content=RESULTS[params.name])


async def main() -> None:
    server = Server("fixture", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


asyncio.run(main())
