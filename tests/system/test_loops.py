"""The examples' message loops, with the SDKs of the model APIs, against a model server that is a script."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from broker import Broker, Grant
from tests.http_apps import bound_socket, serving, url_of

if TYPE_CHECKING:
    from starlette.requests import Request

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPT = "from tools import people\nprint(await people.greet(name='Ada'))"
PNG = b"\x89PNG\r\n\x1a\n"
DISPLAYS = f"""
display({PNG!r})
for mime_type in ["image/svg+xml", "audio/wav", "text/csv"]:
    display(b"abc", mime_type=mime_type)
"""
OTHERS = ["abc", "[audio/wav cannot be shown to you]", "abc"]
STEPS = [
    ("get_tool_details", {"tools": ["people.greet"]}),
    ("execute_code", {"code": "from tools import people\npeople.greet(1)"}),
    ("execute_code", {"code": DISPLAYS}),
    ("execute_code", {"code": SCRIPT}),
]


def greet(name: str) -> str:
    """Greets."""
    return f"hello {name}"


def example(name: str) -> Any:
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@asynccontextmanager
async def model_server(route: Route):
    """Serve a model API on a free port."""
    sock = bound_socket()
    async with serving(Starlette(routes=[route]), sock):
        yield url_of(sock)


@asynccontextmanager
async def session():
    with anyio.fail_after(90):
        async with Broker(servers={"people": [greet]}) as broker:
            yield broker.session(grants=[Grant("*")])


async def test_the_loop_on_the_anthropic_api():
    asked: list[dict[str, Any]] = []

    async def messages(request: Request) -> JSONResponse:
        body = await request.json()
        asked.append(body)
        turn = len(body["messages"]) // 2
        if turn < len(STEPS):
            name, arguments = STEPS[turn]
            content = [{"type": "tool_use", "id": f"call_{turn}", "name": name, "input": arguments}]
        else:
            content = [{"type": "text", "text": body["messages"][-1]["content"][0]["content"][0]["text"]}]
        usage = {"input_tokens": 1, "output_tokens": 1}
        return JSONResponse(
            {"id": "m", "type": "message", "role": "assistant", "model": "stub", "content": content, "usage": usage}
        )

    route = Route("/v1/messages", messages, methods=["POST"])
    async with model_server(route) as url, session() as one:
        said = await example("anthropic_loop").ask(one, "Greet Ada.", base_url=url, api_key="none")
    assert said == "hello Ada\ncalls: people.greet ok"
    assert [tool["name"] for tool in asked[0]["tools"]] == ["search_tools", "get_tool_details", "execute_code"]
    mistaken = asked[2]["messages"][-1]["content"][0]
    assert mistaken["is_error"]
    assert "The script was not started, nothing was executed." in mistaken["content"][0]["text"]
    text, image, *others = asked[3]["messages"][-1]["content"][0]["content"]
    assert text["text"].startswith("The script displayed 4 blocks, below.")
    assert image == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    assert others == [{"type": "text", "text": line} for line in OTHERS]


async def test_the_loop_on_the_openai_api():
    asked: list[dict[str, Any]] = []

    async def responses(request: Request) -> JSONResponse:
        body = await request.json()
        asked.append(body)
        outputs = [item for item in body["input"] if item.get("type") == "function_call_output"]
        if len(outputs) < len(STEPS):
            name, arguments = STEPS[len(outputs)]
            call = {"type": "function_call", "id": f"fc_{len(outputs)}", "call_id": f"call_{len(outputs)}"}
            output = [{**call, "name": name, "arguments": json.dumps(arguments), "status": "completed"}]
        else:
            text = {"type": "output_text", "text": outputs[-1]["output"][0]["text"], "annotations": []}
            message: dict[str, Any] = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
            output = [{**message, "status": "completed"}]
        base = {"id": "r", "object": "response", "created_at": 0, "model": "stub", "status": "completed"}
        more = {"tools": [], "parallel_tool_calls": True, "tool_choice": "auto"}
        return JSONResponse({**base, **more, "output": output})

    route = Route("/v1/responses", responses, methods=["POST"])
    async with model_server(route) as url, session() as one:
        said = await example("openai_loop").ask(one, "Greet Ada.", base_url=f"{url}/v1", api_key="none")
    assert said == "hello Ada\ncalls: people.greet ok"
    assert [tool["name"] for tool in asked[0]["tools"]] == ["search_tools", "get_tool_details", "execute_code"]
    text, image, *others = asked[3]["input"][-1]["output"]
    assert text["text"].startswith("The script displayed 4 blocks, below.")
    assert image == {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    assert others == [{"type": "input_text", "text": line} for line in OTHERS]
