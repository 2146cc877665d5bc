"""What is said of the descriptions of tools: how they are read, why one was not, what has changed in one.

Above: tool_descriptions.py, asked_tools.py, disclosure.py, tool_changes.py, manifest.py. Below: call_texts.py. Nothing
here decides anything.
"""

from __future__ import annotations

import json
import math

from broker.texts.call_texts import bounded_problem
from codegen.plain_text import one_line

_NAME_CHARACTERS = 200
_SERVER_CHARACTERS = 80
_CHANGES_CHARACTERS = 100

NOT_OFFERED = "it is not offered any more"
RESULT_CHANGED = "what it returns"
SCHEMA_CHANGED = "its input schema"


def workflow(uri: str) -> str:
    """Return the description of the resource where the tools themselves are listed."""
    return (
        "Full descriptions of tools: schemas, examples, guidance. Tools are listed with one sentence and an open "
        f"schema. Before you call a tool, read {uri}?tools=NAME1,NAME2 with the tools that you are about to use, all "
        "in one read; then call them with arguments that fit. A tool is read once in a session, and again after a "
        "change."
    )


def scripts_workflow(uri: str) -> str:
    """Return the description of the resource where tools are called in scripts."""
    return (
        "Full descriptions of tools: schemas, examples, guidance. Scripts of execute_code call the tools, and only "
        f"those that were described: read {uri}?tools=NAME1,NAME2 with the tools that a script is about to use, all "
        "in one read, or fetch their typed stubs with get_tool_details. A tool is read once in a session, and again "
        "after a change."
    )


def system_prompt(uri: str, code: str) -> str:
    """Return what a client's system prompt should say; `code` is of a call that came before its read."""
    return (
        "Tools of this server are listed with one sentence each. Do not guess their parameters. Work in two steps: "
        f"1. read the resource {uri}?tools=NAME1,NAME2, or call get_tool_details, for all the tools that you will "
        "need now; 2. call them with arguments that fit the inputSchema you have read. A call that answers "
        f"{code} was not executed: do what its message says, then call again."
    )


def of_server(server: str) -> str:
    """Return what a namespace of stubs says of itself."""
    return f"The tools of the server {one_line(server, _SERVER_CHARACTERS)}."


def missing_selection(uri: str) -> str:
    """Return that a read names no tool."""
    return f"Say which tools: read {uri}?tools=NAME1,NAME2. Nothing was described."


def too_long_uri(characters: int, most: int) -> str:
    """Return that the URI of a read is longer than is read, of which at most so many tools are described."""
    return (
        f"The URI has more than {characters} characters. Nothing was described. Read it with fewer names: at most "
        f"{most} tools at a time."
    )


def description_required(name: str, uri: str, session: str | None, changed: str) -> str:
    """Return that a call came before the read of `uri`, or after what that says has `changed`.

    It names the tool as well as the resource: the models of many clients read no resources. With a `session` that the
    client itself does not pass on, only the tools that take one are of use.
    """
    named = {"session": session} if session else {}
    why = f"it has changed since its description was read ({one_line(changed, _CHANGES_CHARACTERS)})"
    read = json.dumps({"tools": [name], **named}, ensure_ascii=False)
    again = json.dumps({"name": name, "arguments": {}, **named}, ensure_ascii=False)
    how = f"Read {uri} or call get_tool_details with {read}, then call again"
    if session:
        how = f"Call get_tool_details with {read}, then call_tool with {again} and its arguments"
    return (
        f"{one_line(name, _NAME_CHARACTERS)} was not executed: "
        f"{why if changed else 'its description has not been read yet'}. {how}."
    )


def fetched_too_often(seconds: float) -> str:
    """Return why a fetch brings nothing that comes before the session may fetch again."""
    return f"Too many descriptions were fetched; try again in {math.ceil(seconds)} s"


def too_many_fetches(seconds: float) -> str:
    """Return the same as a message of its own."""
    return f"{fetched_too_often(seconds)}. Nothing was described."


def described_later(server: str) -> str:
    """Return that a server that describes its tools itself did not describe one."""
    return f"{one_line(server, _SERVER_CHARACTERS)} does not describe it now: fetch it again in a moment"


def server_down(server: str, problem: str) -> str:
    """Return why nothing of a server can be described; without host paths in `problem`."""
    return f"{one_line(server, _SERVER_CHARACTERS)} is not available: {bounded_problem(problem)}"


def hint_changed(name: str, was: str, now: str) -> str:
    """Return that a server says another thing of what its tool does."""
    return f"its hint {name} (was {was}, is {now})"
