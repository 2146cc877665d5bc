"""The upstream that the conformance suites expect behind a server: tools that answer as their scenarios say."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import mcp.types as t
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

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
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
INPUTS: dict[str, dict[str, Any]] = {
    "json_schema_2020_12_tool": SCHEMA_2020,
    "test_elicitation": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    "test_header_parameter": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    },
}
FIRST_TO_THIRD = [
    {"const": f"value{number}", "title": title} for number, title in enumerate(("One", "Two", "Three"), 1)
]
OPTIONS = ["option1", "option2", "option3"]


def form(message: str, *required: str, **properties: dict[str, Any]) -> t.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return t.ElicitRequest(params=t.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str) -> t.CreateMessageRequest:
    asked = t.SamplingMessage(role="user", content=t.TextContent(type="text", text=prompt))
    return t.CreateMessageRequest(params=t.CreateMessageRequestParams(messages=[asked], max_tokens=100))


NAME = form("What is your name?", "name", name={"type": "string"})
CONFIRM = form("Please confirm", "ok", ok={"type": "boolean"})
COLOUR = form("Step 2: What is your favorite color?", "color", color={"type": "string"})
ROUNDS: dict[str, list[dict[str, t.ElicitRequest | t.CreateMessageRequest | t.ListRootsRequest]]] = {
    "test_elicitation": [
        {
            "user": form(
                "Please provide your information",
                "username",
                "email",
                username={"type": "string", "description": "User's response"},
                email={"type": "string", "description": "User's email address"},
            )
        }
    ],
    "test_elicitation_sep1034_defaults": [
        {
            "defaults": form(
                "Please check",
                name={"type": "string", "default": "John Doe"},
                age={"type": "integer", "default": 30},
                score={"type": "number", "default": 95.5},
                status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                verified={"type": "boolean", "default": True},
            )
        }
    ],
    "test_elicitation_sep1330_enums": [
        {
            "choices": form(
                "Please choose",
                untitledSingle={"type": "string", "enum": OPTIONS},
                titledSingle={"type": "string", "oneOf": FIRST_TO_THIRD},
                legacyEnum={"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
                untitledMulti={"type": "array", "items": {"type": "string", "enum": OPTIONS}},
                titledMulti={"type": "array", "items": {"anyOf": FIRST_TO_THIRD}},
            )
        }
    ],
    "test_streaming_elicitation": [{"confirm": CONFIRM}],
    "test_sampling": [{"answer": sampling("Test prompt for sampling")}],
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_request_state": [{"confirm": CONFIRM}],
    "test_input_required_result_tampered_state": [{"confirm": CONFIRM}],
    "test_input_required_result_multi_round": [{"step1": NAME}, {"step2": COLOUR}],
    "test_input_required_result_sampling": [{"capital_question": sampling("What is the capital of France?")}],
    "test_input_required_result_list_roots": [{"client_roots": t.ListRootsRequest()}],
    "test_input_required_result_multiple_inputs": [
        {"user_name": NAME, "greeting": sampling("Generate a greeting"), "client_roots": t.ListRootsRequest()}
    ],
    "test_input_required_result_capabilities": [{"question": sampling("What is the capital of France?")}],
}
"""What tools ask before they answer: requests by their keys, round by round."""


def text(said: str) -> t.TextContent:
    return t.TextContent(type="text", text=said)


def image() -> t.ImageContent:
    return t.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri: str, said: str, mime_type: str) -> t.EmbeddedResource:
    contents = t.TextResourceContents(uri=uri, mime_type=mime_type, text=said)
    return t.EmbeddedResource(type="resource", resource=contents)


CHANGES = InMemorySubscriptionBus()
ADDED: list[str] = []
"""The tools that a scenario has added."""

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
    "test_logging_tool": [text("done")],
    "test_header_parameter": [text("done")],
}


async def list_tools(_ctx, _params) -> t.ListToolsResult:
    names = [*RESULTS, *ROUNDS, "test_error_handling", "test_missing_capability", "test_trigger_tool_change", *ADDED]
    tools = [
        t.Tool(name=name, description=f"The tool of the scenario {name}.", input_schema=INPUTS.get(name, NOTHING))
        for name in names
    ]
    return t.ListToolsResult(tools=tools)


async def call_tool(ctx, params: t.CallToolRequestParams) -> t.CallToolResult | t.InputRequiredResult:
    if params.name in ROUNDS:
        return next_round(params)
    if params.name == "test_error_handling":
        said = "This tool intentionally returns an error for testing"
        return t.CallToolResult(content=[text(said)], is_error=True)
    if params.name == "test_missing_capability":
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(t.MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is needed", needed)
    if params.name == "test_trigger_tool_change":
        ADDED.append(f"test_added_{len(ADDED)}")
        await CHANGES.publish(ToolsListChanged())
        return t.CallToolResult(content=[text("done")])
    if params.name == "test_tool_with_progress":
        for done in (0, 50, 100):
            await ctx.session.report_progress(done, 100, f"{done} of 100")
    if "logging" in params.name:
        for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.session.send_log_message("info", said)
    return t.CallToolResult(content=RESULTS[params.name])


def next_round(params: t.CallToolRequestParams) -> t.CallToolResult | t.InputRequiredResult:
    """Ask the next that a tool asks; the state says how much was answered."""
    rounds, answered = ROUNDS[params.name], int(params.request_state or 0)
    if answered < len(rounds):
        return t.InputRequiredResult(input_requests=rounds[answered], request_state=str(answered + 1))
    said = {key: one.model_dump(mode="json") for key, one in (params.input_responses or {}).items()}
    return t.CallToolResult(content=[text(f"state-ok; user response: {said}")])


async def main() -> None:
    listen = ListenHandler(CHANGES)
    server = Server("fixture", on_list_tools=list_tools, on_call_tool=call_tool, on_subscriptions_listen=listen)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


asyncio.run(main())
