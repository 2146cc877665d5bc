"""An MCP server over stdio whose tools are the functions of a file: `plain.py FILE`.

For tests in which the server is not what is tested: it needs the standard library only, and starts in a fraction of the
second and a half that importing the SDK takes. Schemas and errors are those of the SDK's server, but it checks no
arguments, and speaks the handshake era only.
"""

from __future__ import annotations

import inspect
import json
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TYPES = {str: "string", int: "integer", bool: "boolean"}
FILE = Path(sys.argv[1])


def schema(name: str, fields: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "title": name, "properties": fields} | ({"required": required} if required else {})


def field(name: str, kind: type, default: Any = inspect.Parameter.empty) -> dict[str, Any]:
    described = {"title": name.title(), "type": TYPES[kind]}
    return described if default is inspect.Parameter.empty else described | {"default": default}


def tool(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    signature = inspect.signature(function, eval_str=True)
    parameters = signature.parameters.values()
    fields = {each.name: field(each.name, each.annotation, each.default) for each in parameters}
    required = [each.name for each in parameters if each.default is each.empty]
    result = {"result": field("result", signature.return_annotation)}
    return {
        "name": name,
        "description": function.__doc__,
        "inputSchema": schema(f"{name}Arguments", fields, required),
        "outputSchema": schema(f"{name}Output", result, ["result"]),
    }


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        result = tools[name](**arguments)
    except Exception as error:  # noqa: BLE001  # as the SDK does
        said = {"type": "text", "text": f"Error executing tool {name}: {error}"}
        return {"content": [said], "isError": True}
    text = result if isinstance(result, str) else json.dumps(result)
    return {"content": [{"type": "text", "text": text}], "structuredContent": {"result": result}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any]
    match method:
        case "initialize":
            info = {"name": FILE.stem, "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            result = {"tools": [tool(name, function) for name, function in tools.items()]}
        case "tools/call":
            result = call(params["name"], params.get("arguments") or {})
        case "ping":
            result = {}
        case _:
            return {"error": {"code": -32601, "message": f"Method not found: {method}"}}
    return {"result": result}


defined = runpy.run_path(str(FILE))
tools = {name: it for name, it in defined.items() if inspect.isfunction(it) and not name.startswith("_")}
for line in sys.stdin:
    request = json.loads(line)
    if "method" in request and "id" in request:
        reply = answer(request["method"], request.get("params") or {})
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"]} | reply) + "\n")
        sys.stdout.flush()
