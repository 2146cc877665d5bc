"""An MCP server over stdio with the tools of one server of a corpus: `many.py FILE NUMBER`. Standard library only.

Lists in pages of fifty. With STORM set, each call and each listing announces a changed listing so many times, though
only a call of `last` changes it: it adds that tool. How often the tools were listed is appended to the file LISTINGS.
"""

import json
import os
import sys
from pathlib import Path

FILE, NUMBER = sys.argv[1], int(sys.argv[2])
PAGE = 50
with Path(FILE).open(encoding="utf-8") as corpus:
    TOOLS = json.loads(next(line for at, line in enumerate(corpus) if at == NUMBER))
lines = sys.stdin


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def storm():
    for _ in range(int(os.environ.get("STORM", "0"))):
        send({"method": "notifications/tools/list_changed"})


def listing(cursor):
    start = int(cursor or 0)
    if start == 0 and (path := os.environ.get("LISTINGS")):
        with Path(path).open("a", encoding="utf-8") as log:
            log.write("listed\n")
        storm()
    page: dict[str, object] = {"tools": TOOLS[start : start + PAGE]}
    return page | ({"nextCursor": str(start + PAGE)} if start + PAGE < len(TOOLS) else {})


for line in lines:
    request = json.loads(line)
    result: object = None
    match request.get("method"):
        case "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "many", "version": "1"},
            }
        case "tools/list":
            result = listing((request.get("params") or {}).get("cursor"))
        case "tools/call":
            if request["params"]["name"] == "last":
                TOOLS.insert(0, {"name": "last", "inputSchema": {"type": "object"}})
            storm()
            content: list[object] = [{"type": "text", "text": request["params"]["name"]}]
            result = {"content": content}
    if result is not None:
        send({"id": request["id"], "result": result})
