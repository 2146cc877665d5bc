"""The texts about tools that models read, in definitions and in replies. Nothing here decides anything.

Above: the surface and the MCP server; run_texts.py is what they read of a run. Below: call_texts.py. Each text says
what happened, what was and was not executed, and what to do next, in less than 800 characters, the script's own output
aside. Words of a server stand in quotes, bounded, with the server's name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from broker.texts.call_texts import WITHDRAWN, bounded_problem, fetch_request, search_request
from broker.tiers.tokens import estimate
from codegen.plain_text import counted, few, one_line, that_fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.disclosure.tool_details import ToolDetails

MESSAGE_CHARACTERS = 800
"""No text of ours is longer."""

_LINES_CHARACTERS = 740
_LINE_CHARACTERS = 340
_NAMES_CHARACTERS = 116
_WHY_CHARACTERS = 200
_NEAR = 3
_NEAR_CHARACTERS = 250
_FAULT_CHARACTERS = 450
_NEXT_CHARACTERS = 500
_SHOWN_CHARACTERS = 128
_SERVERS_CHARACTERS = 100
_SERVERS_TOKENS = 40
_FILTER_CHARACTERS = 120
_GIVEN_CHARACTERS = 40

DESCRIPTIONS = {
    "search_tools": (
        "Find tools of the connected MCP servers by words; an empty query lists them. "
        "detail=full also fetches their descriptions."
    ),
    "get_tool_details": (
        "Get typed Python stubs of tools, named server.tool. execute_code can call only tools fetched here."
    ),
    "execute_code": (
        "Run a Python 3.14 script in a sandbox without files or network. It calls tools:\n"
        "from tools import git\n"
        'log = await git.git_log(repo_path=".")\n'
        "Top-level await, asyncio.gather and the standard library work; each script starts anew. "
        "Failed calls raise tools.ToolError. "
        "You get only what it prints and its last expression's value: filter and summarize there."
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
    "Call any tool by its name, even one that search_tools found and that is not listed here. Read its description "
    "first; arguments are an object that fits its inputSchema."
)
DESCRIBED_FROM_THE_START = (
    " While they fit, all tools are described from the start: no call needs a fetch but of what an empty search names."
)
ALL_DESCRIBED = "All tools are described now: they can be called without a fetch."
READ_NEXT = "This read is full: read this one in the next read."
TIMEOUT = "Seconds, 30 by default"
SESSION = "Name from an earlier reply"
NO_CATEGORIES = "There are no tools, and no categories. The server may still be connecting: search again in a moment."
NOTHING_YET = "There are no tools to list now. Of the servers that may have some:"
NO_TOOLS = "There are no tools to list: no server offers any. Tell the user, who may have to add one to the config."
NO_OBJECT = "its arguments are not a JSON object"
NO_NAMES = "tools: name at least one, as server.tool"
NO_CODE = "code: there is none"
ONE_PAGE = "There is no page of that cursor: the list has one page. Pass no cursor."
OUTPUT_RESOURCE = "The output of a run that was too long for its reply, from a character offset on."
TOO_MANY_RUNS = "Too many scripts are running and waiting here. Nothing was executed; try again in a moment."
TOO_MANY_SESSIONS = (
    "Too many sessions are in use here. Nothing was executed; pass the session name from an earlier reply, or try "
    "again later."
)
SHUTTING_DOWN = "The server is shutting down. Nothing was executed; try again in a moment."
SHUT_DOWN = (
    "The server is shutting down and has ended the script. Calls that were sent stay done: check them before you run "
    "it again."
)


def instructions(servers: Sequence[str]) -> str:
    """Return the instructions of the MCP server: what is connected, and the way to work.

    That first: Codex shows its model the beginning alone until it looks for tools.
    """
    connected = f"Connected: {_first_names(servers)}. " if servers else ""
    return (
        f"{connected}Work in three steps: search_tools finds tools, get_tool_details fetches the typed stubs of those "
        "you need, execute_code runs one Python script that calls them. Put loops, joins and filters into the script "
        "instead of making calls one by one, and print only what you need. Each call is authorized separately and may "
        "be refused; a script can catch that."
    )


def _first_names(servers: Sequence[str]) -> str:
    """Return as many names as the instructions have room for."""
    shown = 0
    while shown < len(servers):
        names = ", ".join(servers[: shown + 1])
        if len(names) > _SERVERS_CHARACTERS or estimate(names) > _SERVERS_TOKENS:
            return f"{', '.join(servers[:shown])} and more" if shown else f"{len(servers)} servers"
        shown += 1
    return ", ".join(servers)


def new_session(handle: str) -> str:
    """Return how to go on with a session that was just made."""
    return f'session: "{handle}" (pass it as session to keep what you fetched and what was allowed)'


def unknown_session(handle: str) -> str:
    """Return that a handle is of no session."""
    return (
        f"There is no session {json.dumps(handle[:80])}; a session ends when it is not used for a while. Nothing was "
        "executed. Leave session out to begin a new one, and fetch again what you need with get_tool_details."
    )


def no_handle(name: str) -> str:
    """Return that a session was named by what is no handle, so that the call was answered in the caller's own."""
    return (
        f"{_quoted(name)} names no session, so your usual one was used. For another one pass "
        'session="new", then the name in its reply.'
    )


def wrong_arguments(tool: str, fault: str, takes: Sequence[str] = ()) -> str:
    """Return that a call of one of the three tools does not fit its schema; and what it `takes`, if names are wrong."""
    names = f" {tool} takes {', '.join(takes)}." if takes else ""
    return (
        f"{tool} was not called: {one_line(fault, _FAULT_CHARACTERS)}.{names} Correct the arguments and call it again."
    )


def no_timeout(seconds: object, most: float) -> str:
    """Return what a timeout has to be."""
    return f"timeout: {one_line(str(seconds), _GIVEN_CHARACTERS)} is not a number of seconds up to {most:g}"


def no_annotation(name: str, known: Iterable[str]) -> str:
    """Return which annotations a search takes, and that they are true or false."""
    return f"The annotation {name[:_GIVEN_CHARACTERS]!r} cannot be used. Give true or false for {', '.join(known)}"


def unknown_tool(name: str, known: Sequence[str]) -> str:
    """Return that there is no such tool on the surface."""
    fetch = f", after {_fetch([name[:120]])}" if "." in name else ""
    return (
        f"There is no tool {json.dumps(name[:80])}. Nothing was executed. Tools: {', '.join(known)}. Tools of servers "
        f"are called in scripts of execute_code{fetch}."
    )


def not_offered(name: str, near: Sequence[str], *, is_withdrawn: bool = False) -> str:
    """Return that there is no tool of a name, where tools are called without a script."""
    hint = f"Did you mean {_either(near)}?" if near else f"Try {search_request(name)}."
    gone = WITHDRAWN if is_withdrawn else ""
    return f"There is no tool {json.dumps(one_line(name, _SHOWN_CHARACTERS))}{gone}. Nothing was executed. {hint}"


def called_by_itself(name: str, through: str) -> str:
    """Return that one of our own tools was called through the one that calls tools of servers."""
    return f"Nothing was executed: {name} is no tool of a server. Call {name} itself, not through {through}."


def several_offered(name: str, near: Sequence[str]) -> str:
    """Return that a bare name is that of several tools, where tools are called without a script."""
    shown = json.dumps(one_line(name, _SHOWN_CHARACTERS))
    return f"Several servers have {shown}. Nothing was executed. Take {_either(near)}."


def session_of_calls(handle: str, through: str) -> str:
    """Return how to go on with a session that was just made, where one tool alone takes its name."""
    return f"{new_session(handle)}. Call these tools through {through} with it."


def imports(namespaces: Sequence[str]) -> str:
    """Return how a script gets at the stubs that follow."""
    return f"# In execute_code: from tools import {', '.join(namespaces)}"


def not_described(details: ToolDetails) -> str:
    """Return which names were not described and why, and what changed in those that were."""
    lines = [
        f"{_quoted(name)} changed since you fetched it: {what.removeprefix('changed: ')}"
        for name, what in details.changed.items()
    ]
    problems: dict[str, list[str]] = {}
    for name, problem in details.unavailable.items():
        problems.setdefault(bounded_problem(problem, _WHY_CHARACTERS), []).append(name)
    for problem, names in problems.items():
        lines.append(f"{problem}. {_some(names)} {'was' if len(names) == 1 else 'were'} not fetched.")
    for name, several in details.ambiguous.items():
        lines.append(f"Several servers have {_quoted(name)}: take one of {_fetch(several[:_NEAR])}.")
    lines += [f"The server of {_quoted(name)} has withdrawn it." for name in details.withdrawn]
    meant = {name: near for name, near in details.unknown.items() if near}
    if meant:
        first = next(iter(meant.values())) if len(meant) == 1 else dict.fromkeys(near[0] for near in meant.values())
        lines.append(f"{_no_tools(meant)}: did you mean {_fetch(first)}?")
    if unlike := [name for name in details.unknown if name not in meant]:
        lines.append(f"{_no_tools(unlike)}: try {search_request(unlike[0])}.")
    shown, room = [], _LINES_CHARACTERS
    for line in (one_line(line, _LINE_CHARACTERS) for line in lines):
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    left = len(lines) - len(shown)
    return "\n".join([*shown, *([f"… and {left} more such lines."] if left else [])])


def outlook(refused: Sequence[str], asked: Sequence[str]) -> str:
    """Return what is certain of calls to some of the tools whose stubs stand above it; empty where nothing is."""
    lines = []
    if refused:
        lines.append(f"# Calls here are refused: {_plainly(refused)}. Do without, or ask the user to allow them.")
    if asked:
        lines.append(f"# A person is asked before each call: {_plainly(asked)}.")
    return "\n".join(lines)


def next_fetch(names: Sequence[str]) -> str:
    """Return how to fetch the tools that a fetch had no room for."""
    shown = that_fit((one_line(name, _SHOWN_CHARACTERS) for name in names), _NEXT_CHARACTERS)
    left = len(names) - len(shown)
    others = f", then the other {left}" if left else ""
    return f"Not fetched, as this reply is full: {counted(len(names), 'tool')}. Next: {fetch_request(shown)}{others}."


def described_now(undescribed: Sequence[str]) -> str:
    """Return that tools need no fetch where they are described from the start; `undescribed` are servers or tools."""
    if not undescribed:
        return ALL_DESCRIBED
    names = few([one_line(name, _SHOWN_CHARACTERS) for name in undescribed], _NEAR)
    return f"These need a fetch with get_tool_details before a call: {names}. All other tools are described now."


def nothing_found(sent: Mapping[str, Any], excluded_by: Sequence[str] = (), *, says_why: bool = False) -> str:
    """Return that a search that was `sent` found nothing.

    `excluded_by` names the filters without which it finds something; with `says_why`, lines about servers follow.
    """
    query = sent.get("query", "").strip()
    nothing = f"No tool matches {json.dumps(query[:80])}" if query else "There is no tool"
    if excluded_by:
        filters = " and ".join(f"{name}={json.dumps(sent[name])[:_FILTER_CHARACTERS]}" for name in excluded_by)
        there = "Some match" if query else "There are some"
        others = f"{there} without {' and '.join(excluded_by)}: {_without(sent, excluded_by)}"
        return f"{nothing} with {filters}. {others}."
    if query:
        return f'{nothing}. Try other words, or search_tools({{"query": ""}}) for all.'
    return NOTHING_YET if says_why else NO_TOOLS


def list_ended(sent: Mapping[str, Any]) -> str:
    """Return that nothing comes after the cursor of a search that was `sent`, where something did once."""
    again = _without(sent, ["cursor"])
    return f"The list ended before this cursor, since the tools have changed. Search again without cursor: {again}."


def shorter_page(sent: Mapping[str, Any], most: int) -> str:
    """Return that a search that was `sent` gets fewer tools on a page than it asked for."""
    call = f"search_tools({json.dumps({**sent, 'limit': most})})"
    named = call if len(call) <= _LINE_CHARACTERS else f"the same search with limit={most}"
    return f"limit: a page has {most} tools at most. This is that of {named}; for the next, add the cursor it names."


def only_categories(sent: Mapping[str, Any], unused: Sequence[str]) -> str:
    """Return which arguments of a search for all categories were not used, and the search that uses them."""
    tools = _without(sent, ["category", "cursor"])
    return f'category="*" lists all categories, without regard to {", ".join(unused)}. For tools: {tools}.'


def next_categories(cursor: str) -> str:
    """Return how to get the next page of categories."""
    return f'More categories: repeat the search with cursor="{cursor}".'


def too_long(names: Sequence[str]) -> str:
    """Return that the stubs of some tools do not fit on a page of a search."""
    fetch = fetch_request([one_line(names[0], _SHOWN_CHARACTERS)])
    how = "Fetch it" if len(names) == 1 else "Fetch them one by one"
    return f"Too long for this page, so not fetched: {_plainly(names)}. {how}: {fetch}."


def next_page(cursor: str) -> str:
    """Return how to get the next page of a search."""
    return f'More tools: repeat the search with cursor="{cursor}".'


def no_resource(uri: str) -> str:
    """Return that there is no such resource, and which one may have been meant."""
    none = f"There is no resource {json.dumps(uri[:200])}."
    if "/runs" not in uri:
        return f"{none} Descriptions of tools are at resource:///tool_descriptions?tools=NAME1,NAME2."
    return (
        f"{none} A run's output is kept for a while, for whoever ran it. "
        "If you still need it, run a script that reads it again and prints less."
    )


def _without(sent: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the literal search that leaves out some arguments of one; in words where it would be long."""
    kept = {name: value for name, value in sent.items() if name not in names} or {"query": ""}
    call = f"search_tools({json.dumps(kept)})"
    return call if len(call) <= _LINE_CHARACTERS else f"repeat the others as they were, without {' and '.join(names)}"


def _either(names: Iterable[str]) -> str:
    return " or ".join(that_fit((json.dumps(name[:_NEAR_CHARACTERS]) for name in names), _LINE_CHARACTERS))


def _fetch(names: Iterable[str]) -> str:
    return fetch_request(that_fit(names, _NAMES_CHARACTERS))


def _no_tools(names: Iterable[str]) -> str:
    named = list(names)
    return f"There {'is no tool' if len(named) == 1 else 'are no tools'} {_some(named)}"


def _some(names: Iterable[str]) -> str:
    """Return the first of some names in quotes, and how many are left out."""
    quoted = [_quoted(name) for name in names]
    return few(quoted, len(that_fit(quoted, _NAMES_CHARACTERS)))


def _plainly(names: Sequence[str]) -> str:
    return few([one_line(name, 80) for name in names], len(that_fit(names, _NAMES_CHARACTERS)))


def _quoted(name: str) -> str:
    return json.dumps(one_line(name, 80))
