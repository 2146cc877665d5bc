"""An MCP server over stdio whose tools are the functions of a file: `plain.py FILE`. Standard library only.

For tests in which the server is not what is tested: it starts in a fraction of the second and a half that importing the
SDK takes. Schemas and errors are those of the SDK's server, but it checks no arguments, and speaks the handshake era
only. Like that one it logs to stderr, which nobody may see.
"""

from __future__ import annotations

import inspect
import json
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TYPES = {str: "string", bool: "boolean", int: "integer"}


def plain(name: str, **variables: str) -> dict[str, Any]:
    """The entry of a config for the tools of `name`.py beside this file."""
    arguments = [__file__, str(Path(__file__).with_name(f"{name}.py"))]
    return {"command": sys.executable, "args": arguments} | ({"env": variables} if variables else {})


def serve(file: str) -> None:
    functions = {name: it for name, it in runpy.run_path(file).items() if inspect.isfunction(it) and name[0] != "_"}
    for line in sys.stdin:
        request = json.loads(line)
        sys.stderr.write(f"Processing request of {request['method']}\n")
        if "id" in request:
            reply = answer(functions, request["method"], request.get("params") or {})
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"]} | reply) + "\n")
            sys.stdout.flush()


def answer(
    functions: Mapping[str, Callable[..., str | bool | int]], method: str, params: dict[str, Any]
) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "plain", "version": "1"}
            return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": [tool(function) for function in functions.values()]}}
        case "tools/call":
            return {"result": call(functions[params["name"]], params.get("arguments") or {})}
    return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


def tool(function: Callable[..., str | bool | int]) -> dict[str, Any]:
    name, signature = function.__name__, inspect.signature(function, eval_str=True)
    parameters = signature.parameters.values()
    return {
        "name": name,
        "description": function.__doc__,
        "inputSchema": {
            "type": "object",
            "title": f"{name}Arguments",
            "properties": {
                each.name: {"title": each.name.title(), "type": TYPES[each.annotation]}
                | ({} if each.default is each.empty else {"default": each.default})
                for each in parameters
            },
            "required": [each.name for each in parameters if each.default is each.empty],
        },
        "outputSchema": {
            "type": "object",
            "title": f"{name}Output",
            "properties": {"result": {"title": "Result", "type": TYPES[signature.return_annotation]}},
            "required": ["result"],
        },
    }


def call(function: Callable[..., str | bool | int], arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        result = function(**arguments)
    except Exception as error:  # noqa: BLE001  # as the SDK does
        said = {"type": "text", "text": f"Error executing tool {function.__name__}: {error}"}
        return {"content": [said], "isError": True}
    text = result if isinstance(result, str) else json.dumps(result)
    return {"content": [{"type": "text", "text": text}], "structuredContent": {"result": result}}


if __name__ == "__main__":
    serve(sys.argv[1])
