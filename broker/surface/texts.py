"""The texts that models read: what the tools are, and what their replies say. Nothing here decides anything.

Above: the other modules of this package. Below: nothing. Each text says what happened, what was and was not executed,
and what to do next, in less than 800 characters, the script's own output aside. Words of a server stand in quotes,
bounded, with the server's name.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import TYPE_CHECKING

from codegen.plain_text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.calls.attempts import CallRecord
    from broker.disclosure.tool_details import ToolDetails
    from broker.runs.envelope import StoppedBy

MESSAGE_CHARACTERS = 800
"""No text of ours is longer."""

_NEVER_SENT = frozenset({"refused", "bad_arguments", "not_described", "not_found", "unavailable", "waiting"})
_GROUPS = 8
_NAME_CHARACTERS = 60
_LINES = 4
_LINE_CHARACTERS = 180
_SERVERS_CHARACTERS = 200

DESCRIPTIONS = {
    "search_tools": (
        "Find tools of the connected MCP servers by words; an empty query lists them. "
        "detail=full also fetches their descriptions."
    ),
    "get_tool_details": (
        "Get typed Python stubs of tools, named server.tool. Only tools fetched here can be called in execute_code."
    ),
    "execute_code": (
        "Run a Python 3.14 script in a sandbox without files or network. It calls tools:\n"
        "from tools import git\n"
        'log = await git.git_log(repo_path=".")\n'
        "Top-level await, asyncio.gather and the standard library work; each script starts anew. "
        "A failed call raises tools.ToolError. "
        "You get only what it prints and the value of its last expression: filter and sum up there."
    ),
}
TOOLS_MODE_DESCRIPTIONS = {
    "search_tools": "Find tools of the connected MCP servers by words; an empty query lists them.",
    "get_tool_details": (
        "Read the full descriptions of tools, which makes them callable: the same as reading the resource "
        "tool_descriptions."
    ),
}
CALL_TOOL = (
    "Call any tool by its name, also one that search_tools found and that is not listed here. Read its description "
    "first; arguments are an object that fits its inputSchema."
)
DESCRIBED_FROM_THE_START = " While they fit, all tools are described from the start: no fetch is needed before a call."
TIMEOUT = "Seconds, 30 by default"
SESSION = "As an earlier reply named it"


def instructions(servers: Sequence[str]) -> str:
    """Return the instructions of the MCP server: the way to work, and what is connected."""
    names = ", ".join(servers)
    if len(names) > _SERVERS_CHARACTERS:
        names = f"{names[:_SERVERS_CHARACTERS].rpartition(', ')[0]} and more"
    connected = f" Connected: {names}." if names else ""
    return (
        "Work in three steps: search_tools finds tools, get_tool_details fetches the typed stubs of those you need, "
        "execute_code runs one Python script that calls them. Put loops, joins and filters into the script instead of "
        "making calls one by one, and print only what you need. Each call is authorized by itself and may be refused; "
        f"a script can catch that.{connected}"
    )


NOTHING_TO_SHOW = (
    "The script completed. It printed nothing and has no value: print what you want to see, or end with an expression."
)


def calls_line(calls: Sequence[CallRecord]) -> str:
    """Return the calls of a run on one line, a group for each tool and status, in the order of their first call."""
    if not calls:
        return ""
    order = {key: number for number, key in reversed(list(enumerate(map(_kind, calls))))}
    groups = [
        f"{name} {status}{f' x{count}' if (count := len(list(same))) > 1 else ''}"
        for (name, status), same in groupby(sorted(calls, key=lambda call: order[_kind(call)]), key=_kind)
    ]
    more = f"; and {len(groups) - _GROUPS} more kinds" if len(groups) > _GROUPS else ""
    return f"calls: {'; '.join(groups[:_GROUPS])}{more}"


def _kind(call: CallRecord) -> tuple[str, str]:
    return one_line(f"{call.server}.{call.tool}", _NAME_CHARACTERS), call.status


def already_made(calls: Sequence[CallRecord]) -> str:
    """Return what a failed run had done, for whoever mends the script."""
    if not calls:
        return "No tool was called."
    if all(call.status in _NEVER_SENT for call in calls):
        return f"{calls_line(calls)}\nNone of these calls was sent."
    rule = "What was sent stays done: in the corrected script repeat calls that only read, and no others."
    return f"{calls_line(calls)}\n{rule}"


REFUSED = (
    "The refused call was not sent. Do without it, or ask the user to allow it; other ways to the same end may be "
    "refused too."
)

ADVICE = {
    "wall_seconds": "Pass a larger timeout (600 at most), or do less in one script.",
    "cpu_seconds": "Leave heavy work to a tool, or do less in one script.",
    "memory_bytes": "Keep less data at a time.",
    "output_bytes": "Print a summary.",
    "value_bytes": "End with a summary.",
    "argument_bytes": "Pass less to one call.",
    "calls": "Ask for more in each call, or split the script.",
    "stack": "Nest and recurse less.",
}


def stopped(by: StoppedBy) -> str:
    """Return what ended a script that was stopped."""
    if by.limit == "shutdown":
        return f"The script was stopped after {by.amount:g} s: the server is shutting down. Run the rest again later."
    advice = ADVICE.get(by.limit, "")
    place = f" at line {by.line}" if by.line is not None else ""
    return f"The script was stopped{place}: limit {by.reached}. {advice}".rstrip()


def left_out(characters: int, uri: str) -> str:
    """Return the notice in the place of output that was cut."""
    return f"\n[{characters} characters left out here; read them at {uri}]\n"


def not_displayed(count: int) -> str:
    """Return that a script displayed what is not shown."""
    left = "1 displayed block is" if count == 1 else f"{count} displayed blocks are"
    return f"[{left} left out: at most 20 and 8 MiB are shown, and nothing whose data or mime type is broken]"


def displayed(count: int) -> str:
    """Return that a script showed something and said nothing."""
    return f"The script displayed {counted(count, 'block')}, below."


def page_end(following: str | None) -> str:
    """Return the last line of a page of kept output."""
    return f"\n[more at {following}]" if following else ""


def new_session(handle: str) -> str:
    """Return how to go on with a session that was just made."""
    return f'session: "{handle}" (pass it as session, so that what was described to you and allowed stays so)'


def unknown_session(handle: str) -> str:
    """Return that a handle is of no session."""
    return (
        f"There is no session {json.dumps(handle[:80])}; sessions end when nobody uses them for a while. Nothing was "
        "executed. Leave session out to begin a new one, and fetch again what you need with get_tool_details."
    )


def wrong_arguments(tool: str, fault: str) -> str:
    """Return that a call of one of the three tools does not fit its schema."""
    return f"{tool} was not called: {fault}. Correct the arguments and call it again."


def unknown_tool(name: str, known: Sequence[str]) -> str:
    """Return that there is no such tool on the surface."""
    fetch = f" Tools of servers are called in scripts of execute_code, after {_fetch([name[:120]])}."
    hint = fetch if "." in name else ""
    return f"There is no tool {json.dumps(name[:80])}. Nothing was executed. Tools: {', '.join(known)}.{hint}"


def imports(namespaces: Sequence[str]) -> str:
    """Return how a script gets at the stubs that follow."""
    return f"# In execute_code: from tools import {', '.join(namespaces)}"


def not_described(details: ToolDetails) -> str:
    """Return which names were not described and why, and what changed in those that were."""
    lines = [f"{_quoted(name)} changed since you fetched it: {what}" for name, what in details.changed.items()]
    lines += [f"{problem}. {_quoted(name)} was not fetched." for name, problem in details.unavailable.items()]
    for name, several in details.ambiguous.items():
        lines.append(f"Several servers have {_quoted(name)}: take one of {_fetch(several)}.")
    for name, near in details.unknown.items():
        search = f"try search_tools({json.dumps({'query': _words(name)})})"
        lines.append(f"There is no tool {_quoted(name)}: {f'did you mean {_fetch(near)}?' if near else f'{search}.'}")
    shown = [one_line(line, _LINE_CHARACTERS) for line in lines[:_LINES]]
    return "\n".join([*shown, *([f"… and {len(lines) - _LINES} more of these names."] if len(lines) > _LINES else [])])


def too_many_tools(left: int, most: int) -> str:
    """Return that a fetch named more tools than one takes."""
    return f"Of the tools named, the last {left} were left out: at most {most} are fetched at a time."


def _fetch(names: Sequence[str]) -> str:
    return f"get_tool_details({json.dumps({'tools': list(names[:3])})})"


def _quoted(name: str) -> str:
    return json.dumps(one_line(name, 80))


def _words(name: str) -> str:
    return " ".join(re.findall(r"[A-Za-z0-9]+", name))[:80]


def nothing_found(query: str) -> str:
    """Return that a search found nothing."""
    return f'No tool is found by {json.dumps(query[:80])}. Try other words, or search_tools({{"query": ""}}) for all.'


def next_page(cursor: str) -> str:
    """Return how to get the next page of a search."""
    return f'More tools: repeat the search with cursor="{cursor}".'


OUTPUT_RESOURCE = "The output of a run that was too long for its reply, from a character on."


def no_resource(uri: str) -> str:
    """Return that there is no such resource."""
    return f"There is no resource {json.dumps(uri[:200])}. The output of a run is kept for a while, for who ran it."


TOO_MANY_RUNS = "Too many scripts are running and waiting here. Nothing was executed; try again in a moment."
TOO_MANY_SESSIONS = (
    "Too many sessions are in use here. Nothing was executed; pass session as an earlier reply named it, or try again "
    "later."
)
SHUTTING_DOWN = "The server is shutting down. Nothing was executed; try again in a moment."
SHUT_DOWN = (
    "The server is shutting down and has ended the script. What it called stays done: look at that before you run it "
    "again."
)


def not_recorded() -> str:
    """Return what is said when a run cannot be begun because it cannot be written down."""
    return (
        "The script was not started: the broker cannot write down what it does, and what is not written down is not "
        "done. Nothing was executed. The broker's operator has to mend its store, as `codemode doctor` says; run the "
        "script again after that."
    )


def no_sandbox() -> str:
    """Return what is said when there is nothing to run a script in."""
    return (
        "The script was not started: the broker cannot run scripts now. Nothing was executed. The broker's operator "
        "has to mend that, as its log and `codemode doctor` say; run the script again after that."
    )


def interrupted(run_id: str, executed: str) -> str:
    """Return what is said of a run that could not be written down or carried out to its end."""
    return (
        "The script was interrupted by a fault of the broker, which could not write down or carry out more of it. "
        f"{one_line(executed, 400)} Tell the user that the broker's operator has to mend that, as `codemode doctor` "
        f"says; then `codemode resume {run_id}` goes on from there. Do not run the script again before."
    )


def not_resumed(reason: str) -> str:
    """Return that the run of a request which is repeated cannot go on."""
    return (
        f"This script began before, and cannot go on: {one_line(reason, 400)} What was called then stays done: "
        "look at that before you send the same code again."
    )
