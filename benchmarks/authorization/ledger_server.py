"""An MCP server over stdio that writes down each call before it answers: `ledger_server.py FILE`. Stdlib alone.

It ends when its input does. Half of the calls of `fail` are answered with an error, after they were written down.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]}
TOOLS = [{"name": name, "description": "Writes it down.", "inputSchema": SCHEMA} for name in ("write", "fail", "drop")]


def answer(method: str, params: dict[str, Any], ledger: int) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        info = {"name": "ledger", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        token = params["arguments"]["token"]
        os.write(ledger, f"{params['name']} {token}\n".encode())
        is_error = params["name"] == "fail"
        return {"content": [{"type": "text", "text": token}], "isError": is_error}
    return {}


def main() -> None:
    """Serve until the input ends."""
    ledger = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params") or {}, ledger)
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
