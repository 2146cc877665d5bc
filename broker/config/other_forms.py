"""Recognises the config forms of other programs, and says what to write here instead: most configs are copied.

Above: config.py, problems.py, variables.py. Below: nothing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ALIASES = {
    "context_servers": "mcpServers",
    "disabled_tools": "hide_tools",
    "disabledtools": "hide_tools",
    "enabled_tools": "allow_tools",
    "enabledtools": "allow_tools",
    "environment": "env",
    "excludetools": "hide_tools",
    "http_headers": "headers",
    "httpurl": "url",
    "includetools": "allow_tools",
    "mcp": "mcpServers",
    "mcp_servers": "mcpServers",
    "servers": "mcpServers",
    "serverurl": "url",
    "startup_timeout_sec": "connect_timeout_seconds",
    "timeout": "call_timeout_seconds",
    "tool_timeout_sec": "call_timeout_seconds",
    "transport": "type",
    "transporttype": "type",
    "workingdirectory": "cwd",
}
"""Keys of other programs in small letters, and ours that mean the same; durations here are seconds."""

_OF_POLICY = "'policy' or --allow decides what may be called; remove it"
_SENTENCES = {
    "alwaysallow": _OF_POLICY,
    "autoapprove": _OF_POLICY,
    "trust": _OF_POLICY,
    "bearer_token_env_var": """write "headers": {"Authorization": "Bearer ${NAME}"} instead""",
    "dev": "is for an editor; remove it",
    "enabled": """write "disabled": true to leave the server out, else remove it""",
    "source": "is for an editor; remove it",
    "tools": "write 'allow_tools' for those to offer; without it all are",
    "envfile": "no env file is read; put the variables into 'env', or write ${NAME} there and set them before",
}
_OF_EDITORS = re.compile(r"workspaceFolder\w*|userHome|pathSeparator|extensionPath|command:.*")
_COMMENT = re.compile(r"//|/\*|#")
_QUOTES = "\u201c\u201d\u2018\u2019'"


def with_servers_named(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with the servers under our key, so that all that is wrong with them is told at once."""
    if "mcpServers" in document:
        return document
    named = [key for key in document if ALIASES.get(key.lower()) == "mcpServers"]
    return {"mcpServers" if key == named[0] else key: value for key, value in document.items()} if named else document


def of_key(key: str) -> str:
    """Return what to do about a key of another program that has no counterpart; empty for any other key."""
    return _SENTENCES.get(key.lower(), "")


def of_variable(name: str) -> str:
    """Return what to write in the place of a variable of another program; empty for any other."""
    if _OF_EDITORS.fullmatch(name):
        return "is known only to an editor; write the path, or ${CONFIG_DIR} for the folder of this file"
    if name.startswith("input:"):
        return "is asked for by an editor; write ${NAME} and set that variable, or keyring://SERVICE/USER"
    return ""


def of_document(document: Mapping[str, Any]) -> str:
    """Return what to do about servers that stand at the top of a file; empty where they do not."""
    are_servers = [isinstance(entry, dict) and bool({"command", "url"} & entry.keys()) for entry in document.values()]
    if document and all(are_servers):
        name = next(iter(document))
        return f"the servers have to stand in 'mcpServers': {{\"mcpServers\": {{{json.dumps(name)}: …}}}}"
    return ""


def of_text(text: str, position: int, source: str) -> str:
    """Return why a text is no JSON from the place where it stops being that; empty where that says enough."""
    before, after = text[:position].rstrip(), text[position:].lstrip()
    if source.endswith(".toml"):
        return 'a config is JSON, not TOML: {"mcpServers": {…}}; `codemode mcp import --from FILE` makes one of it'
    if _COMMENT.match(after):
        return "JSON has no comments; remove it"
    if before.endswith(",") and after[:1] in {"}", "]"}:
        return "remove the comma before it"
    if after[:1] and after[0] in _QUOTES:
        return 'write straight double quotes (")'
    return ""
