"""An MCP server over stdio that speaks the tool_descriptions extension: `described.py [MODE]`. Standard library only.

Written after the extension's text and apart from our own server role. Calls are appended to the file CALLS_LOG.
"""

import json
import os
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

MODE = sys.argv[1] if len(sys.argv) > 1 else "plain"
TOOLS: dict[str, dict[str, object]] = {
    "send_mail": {
        "name": "send_mail",
        "description": "Sends a mail to one person. Takes effect at once.",
        "inputSchema": {
            "type": "object",
            "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
            "required": ["to"],
        },
        "examples": [{"to": "a@example.com"}],
        "error_handling": "A mail to nobody is an error.",
    },
    "count_mails": {
        "name": "count_mails",
        "description": "Counts mails. All of them.",
        "inputSchema": {"type": "object", "properties": {"folder": {"type": "string"}}},
    },
}
# In mode `refusing` no call is ever taken.
# In mode `silent` the resource says nothing of `send_mail`.
# With SESSION_KEYS, its answers to reads and calls hold these one after the other, and it notes those that it is sent.
# In mode `odd_resources` other resources are malformed; in mode `late` the first listing of them fails, in mode `never`
# and `never_with_status` every one, in mode `never_at_first` the first read as well; in mode `round` their pages go
# round.
# In mode `ordinary` the tools are listed as they are, and there are no resources.
# In mode `short` a read describes the first tool that it asks for, and leaves the others to the next read; `send_mail`
# cannot be had at all in mode `down`.
# In mode `with_status` a tool is listed as a whole, and the resource does not know it.
STATUS = {
    "name": "status",
    "description": "Says how it is.",
    "inputSchema": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
}
authorized: set[str] = {"status"}
malformed: list[bool] = []
exhausted: list[str] = []
held: list[dict[str, object]] = []
pages: list[str | None] = []
reads: list[str] = []
# In mode `elsewhere` the resource has another URI, in mode `half` one that holds half of a surrogate pair.
URI = {"elsewhere": "post://help/tool_descriptions", "half": "post://\ud800"}.get(MODE, "resource:///tool_descriptions")
KEY = "codemode/session"
KEYS = json.loads(os.environ.get("SESSION_KEYS", "[]"))


def note(line):
    if path := os.environ.get("CALLS_LOG"):
        with Path(path).open("a", encoding="utf-8") as log:
            log.write(line + "\n")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def listed(tool):
    return {
        "name": tool["name"],
        "description": str(tool["description"]).partition(".")[0] + ".",
        "inputSchema": {"type": "object", "properties": {}},
    }


def read(uri):
    query = parse_qs(urlsplit(uri).query)
    if uri.partition("?")[0] != URI:
        return {}
    if "tools" not in query:
        return {"error": {"code": "MISSING_TOOL_SELECTION", "message": "which?"}}
    names = query["tools"][0].split(",")
    note("read " + ",".join(names))
    if exhausted:
        return {"error": {"code": "TOO_MANY_FETCHES", "message": "later"}}
    authorized.update(names)
    found = {
        name: TOOLS.get(name, {"error": f"Tool '{name}' not found", "available_tools": list(TOOLS)}) for name in names
    }
    if MODE == "silent":
        found.pop("send_mail", None)
    if MODE == "down" and "send_mail" in found:
        found["send_mail"] = {"error": "The mail is down", "available_tools": []}
    if MODE == "short":
        authorized.difference_update(names[1:])
        found |= {name: {"error": "The read is full"} for name in names[1:]}
    return {"tools": list(found.values())} if MODE == "as_list" else found


def resources():
    resource = {"uri": URI, "name": "tool_descriptions"}
    if MODE.startswith("never") or (MODE == "late" and len(pages) == 1):
        return None
    if MODE in ("round", "half_a_cursor"):
        cursor = "again" if MODE == "round" else "\ud800"
        return {"resources": [{"uri": "file:///x", "name": "x"}], "nextCursor": cursor}
    if MODE == "odd_resources":
        odd = [{"uri": "file:///x"}, {"name": 5, "uri": []}, 5, None]
        return {"resources": [*odd, resource]} if pages[-1] else {"resources": odd, "nextCursor": "more"}
    return {"resources": [resource]}


def call(params):
    name, arguments = params["name"], params.get("arguments", {})
    if MODE == "refusing":
        note(f"call {name} {json.dumps(arguments)}")
    if MODE == "refusing" or (name not in authorized and MODE != "ordinary"):
        error = {
            "code": "TOOL_DESCRIPTION_REQUIRED",
            "message": "read it first",
            "resource_uri": f"resource:///tool_descriptions?tools={name}",
        }
        return {"content": [{"type": "text", "text": json.dumps({"error": error})}], "isError": True}
    note(f"call {name} {json.dumps(arguments)}")
    if arguments.get("text") == "forget":
        authorized.clear()
    if arguments.get("text") == "change":
        authorized.clear()
        TOOLS[name]["description"] = "Sends a mail to everybody."
    if arguments.get("text") == "advise":
        TOOLS[name]["_meta"] = {"usage": "Only to people who have asked for it."}
        send({"method": "notifications/tools/list_changed"})
    if arguments.get("text") in {"exhaust", "fail", "hang"}:
        authorized.clear()
        exhausted.append(arguments["text"])
    if arguments.get("text") == "hold":  # the next read is answered after the one that follows it
        held.append({})
        send({"method": "notifications/tools/list_changed"})
    if arguments.get("text") == "withdraw":
        del TOOLS[name]
        send({"method": "notifications/tools/list_changed"})
    if arguments.get("text") == "break":
        malformed.append(True)
        send({"method": "notifications/tools/list_changed"})
    return {"content": [{"type": "text", "text": "done"}]}


def handle(request):
    params = request.get("params") or {}
    match request.get("method"):
        case "initialize":
            capabilities = {"tools": {"listChanged": True}} | ({} if MODE == "ordinary" else {"resources": {}})
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "serverInfo": {"name": "described", "version": "1"},
            }
        case "tools/list":
            whole = [STATUS] if MODE.endswith("with_status") else []
            tools = TOOLS.values() if MODE == "ordinary" else map(listed, TOOLS.values())
            return {"tools": [*tools, *whole]}
        case "resources/list":
            pages.append(params.get("cursor"))
            return resources()
        case "resources/read":
            reads.append(params["uri"])
            is_first = MODE == "never_at_first" and len(reads) == 1
            text = json.dumps({} if is_first else read(params["uri"]))
            contents = [{"uri": params["uri"], "mimeType": "application/json", "text": text}]
            fails = exhausted == ["fail"]
            return None if fails else {"contents": 5 if malformed or is_first else contents}
        case "tools/call":
            return call(params)
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = handle(request)
        if request["method"] in {"resources/read", "tools/call"}:
            meta = request["params"].get("_meta", {})
            if KEY in meta:
                note(f"key {meta[KEY]}")
            if KEYS:
                result["_meta"] = {KEY: KEYS.pop(0), "other": 1}
        if result is None:
            send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
        elif exhausted == ["hang"] and request["method"] == "resources/read":
            pass
        elif held == [{}] and request["method"] == "resources/read":
            held[0] = {"id": request["id"], "result": result}
        else:
            send({"id": request["id"], "result": result})
            if held and held[0] and request["method"] == "resources/read":
                send(held.pop())
