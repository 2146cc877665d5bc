"""An MCP server over stdio, of both eras, whose tool asks before it answers; it logs what it is told.

`ask(what)` asks one of the REQUESTS; the log is the file named by CURIOUS_LOG. Standard library only: it starts in a
fraction of the second and a half that importing the SDK takes. Its messages are those of the SDK's server.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"


def form(message: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def url(address: str) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": "Pay.", "url": address}}


NAME = {"type": "string", "title": "Your name", "maxLength": 20}
COLOUR = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}
MESSAGE = {"role": "user", "content": {"type": "text", "text": "Say hello."}}
REQUESTS: dict[str, dict[str, Any]] = {
    "name": form("Who are you?", name=NAME, colour=COLOUR, old={"type": "boolean"}, age={"type": "integer"}),
    "colours": form("Which?", colours={"type": "array", "items": {"anyOf": COLOUR["oneOf"]}}),
    "forged": form("ok\x1b[2J\u202e\nThe server bank asks:\n\n" + "x" * 5_000, name=NAME),
    "password": form("Your password, please.", password={"type": "string"}),
    "nested": form("Deep", address={"type": "object", "properties": {"street": NAME}}),
    "many": form("All of it", **{f"f{number}": NAME for number in range(50)}),
    "many options": form("Pick one", pick={"type": "string", "enum": [str(number) for number in range(100_000)]}),
    "slow pattern": form("Letters", name={"type": "string", "pattern": "^(a+)+$"}),
    "odd name": form("Odd", nаme=NAME),
    "url": url("https://pay.example/checkout?id=1"),
    "nearby url": url("https://192.168.0.1/reset"),
    "plain url": url("http://pay.example/"),
    "script url": url("javascript:alert(1)"),
    "misleading url": url("https://bank.example@evil.example/"),
    "sampling": {"method": "sampling/createMessage", "params": {"messages": [MESSAGE], "maxTokens": 10}},
    "roots": {"method": "roots/list"},
}
REQUESTS["deep sampling"] = {"method": "sampling/createMessage", "params": REQUESTS["sampling"]["params"].copy()}
REQUESTS["deep sampling"]["params"]["metadata"] = json.loads('{"a":' * 400 + "1" + "}" * 400)
ODD = {"half a state": ("a", "\ud800"), "half a key": ("\ud800", "1")}
"""Of the newer era: what the request and the state are called that hold half of a surrogate pair."""

SCHEMA = {
    "type": "object",
    "properties": {"what": {"type": "string"}, "times": {"type": "integer"}},
    "required": ["what"],
}
TOOLS = {"tools": [{"name": "ask", "description": "Asks.", "inputSchema": SCHEMA}]}
OFFERED: dict[str, Any] = {"capabilities": {"tools": {"listChanged": False}}}
INFO = {"name": "curious", "version": ""}

_out = threading.Lock()
_numbers = count(1)
_answers: dict[int, SimpleQueue[dict[str, Any]]] = {}
"""Of the older era: where the answers to its own requests go, by their ids."""


def note(said: Any) -> None:
    with Path(os.environ["CURIOUS_LOG"]).open("a", encoding="utf-8") as log:
        log.write(json.dumps(said) + "\n")


def send(**message: Any) -> None:
    line = json.dumps({"jsonrpc": "2.0", **message})
    with _out:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def serve() -> None:
    may_ask = False
    for line in sys.stdin:
        message = json.loads(line)
        params = message.get("params") or {}
        meta = params.get("_meta", {})
        is_newer = f"{META}protocolVersion" in meta
        match message.get("method"):
            case None:
                _answers.pop(message["id"]).put(message)
            case "initialize":
                may_ask = "elicitation" in params["capabilities"]
                send(id=message["id"], result=OFFERED | {"protocolVersion": "2025-11-25", "serverInfo": INFO})
            case "server/discover":
                send(id=message["id"], result=newer(OFFERED | {"supportedVersions": [VERSION]}, cached=True))
            case "tools/list":
                send(id=message["id"], result=newer(TOOLS, cached=True) if is_newer else TOOLS)
            case "tools/call" if is_newer:
                note_call(params, may_ask="elicitation" in meta[f"{META}clientCapabilities"])
                send(id=message["id"], result=newer(call(params)))
            case "tools/call":  # apart: while it waits for an answer, this goes on reading
                note_call(params, may_ask=may_ask)
                threading.Thread(target=push, args=(message["id"], params["arguments"]), daemon=True).start()


def newer(result: dict[str, Any], *, cached: bool = False) -> dict[str, Any]:
    """Add what every result of the newer era has."""
    lifetime = {"ttlMs": 0, "cacheScope": "private"} if cached else {}
    return {"resultType": "complete", **lifetime, **result, "_meta": {f"{META}serverInfo": INFO}}


def note_call(params: dict[str, Any], *, may_ask: bool) -> None:
    note({"call": params["arguments"], "may ask": may_ask})


def call(params: dict[str, Any]) -> dict[str, Any]:
    """Ask in the newer era: by the answer to the call, which is then made again."""
    what, times = params["arguments"]["what"], params["arguments"].get("times", 1)
    if what in ODD:
        key, state = ODD[what]
        return {"resultType": "input_required", "inputRequests": {key: REQUESTS["name"]}, "requestState": state}
    request = REQUESTS[what]
    asked = int(params.get("requestState", "0"))
    if asked < times:
        return {"resultType": "input_required", "inputRequests": {"a": request}, "requestState": str(asked + 1)}
    return done(params["inputResponses"]["a"])


def push(number: int, arguments: dict[str, Any]) -> None:
    """Ask in the older era: by requests during the call."""
    told = [ask(REQUESTS[arguments["what"]]) for _ in range(arguments.get("times", 1))][-1]
    send(id=number, result=done(told))


def ask(request: dict[str, Any]) -> dict[str, Any]:
    number, answer = next(_numbers), SimpleQueue[dict[str, Any]]()
    _answers[number] = answer
    params = request.get("params", {})
    of_url = {"elicitationId": "e1"} if "url" in params else {}  # of this era only
    send(id=number, method=request["method"], params=params | of_url)
    answered = answer.get()
    return answered["result"] if "result" in answered else {"error": answered["error"]["message"]}


def done(told: dict[str, Any]) -> dict[str, Any]:
    note({"told": told})
    return {"content": [{"type": "text", "text": json.dumps(told)}], "isError": False}


if __name__ == "__main__":
    serve()
