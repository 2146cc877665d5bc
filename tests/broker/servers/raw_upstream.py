"""An MCP server over stdio that answers with what it is told to, byte for byte: `raw_upstream.py FILE`.

FILE holds JSON: for a method, the lines to write, in which %ID% stands for the request's id. Methods that are not named
are answered honestly. Each call is appended to the file named by HOSTILE_LOG. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

ANSWERS: dict[str, str] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
HONEST: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "raw", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "echo", "description": "Says it again.", "inputSchema": TEXT}]},
    "tools/call": {"content": [{"type": "text", "text": "hi"}]},
}


def answer(message: dict[str, Any]) -> str:
    method, number = message["method"], json.dumps(message["id"])
    if method in ANSWERS:
        return ANSWERS[method].replace("%ID%", number)
    if method in HONEST:
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": HONEST[method]}) + "\n"
    error = {"code": -32601, "message": "Method not found"}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}) + "\n"


for line in sys.stdin:
    received = json.loads(line)
    if received.get("method") == "tools/call":
        with Path(os.environ["HOSTILE_LOG"]).open("a", encoding="utf-8") as log:
            log.write("call\n")
    if "method" in received and "id" in received:
        sys.stdout.buffer.write(answer(received).encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()
