"""Entries of other clients as ours: what each client writes for one thing, and what is no entry."""

from __future__ import annotations

import json
import operator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config.clients.entries import Folders, NotConvertedError, converted
from broker.config.edit import entry_problems

HOME = Folders(Path("/home/me"), Path("/home/me"))
PROJECT = Folders(Path("/home/me"), Path("/src/app/.vscode"), Path("/src/app"))
STDIO = {"command": "npx", "args": ["-y", "pkg"]}

ENTRIES = {
    "the common form": (STDIO | {"type": "stdio", "env": {"A": "b"}}, STDIO | {"env": {"A": "b"}}),
    "a URL": ({"type": "http", "url": "https://a.example/mcp"}, {"url": "https://a.example/mcp"}),
    "numbers and truths as text": (
        {"command": "x", "args": [1, True], "env": {"PORT": 80}},
        {"command": "x", "args": ["1", "true"], "env": {"PORT": "80"}},
    ),
    "what is null is not there": (STDIO | {"env": None, "cwd": None}, STDIO),
    "a command with its arguments": (
        {"type": "local", "command": ["npx", "-y", "pkg"], "environment": {"A": "b"}, "enabled": True},
        STDIO | {"env": {"A": "b"}},
    ),
    "a program": ({"command": {"path": "npx", "args": ["-y", "pkg"], "env": {"A": "b"}}}, STDIO | {"env": {"A": "b"}}),
    "disabled": (STDIO | {"disabled": True}, STDIO | {"disabled": True}),
    "not enabled": (STDIO | {"enabled": False}, STDIO | {"disabled": True}),
    "all tools": (STDIO | {"tools": ["*"]}, STDIO),
    "some tools": (STDIO | {"tools": ["a", "b"]}, STDIO | {"allow_tools": ["a", "b"]}),
    "no tools": (STDIO | {"includeTools": []}, STDIO | {"allow_tools": []}),
    "hidden tools": (STDIO | {"excludeTools": ["a"]}, STDIO | {"hide_tools": ["a"]}),
    "seconds": (
        STDIO | {"startup_timeout_sec": 20, "tool_timeout_sec": 1.5, "disabled_tools": ["a"]},
        STDIO | {"hide_tools": ["a"], "connect_timeout_seconds": 20, "call_timeout_seconds": 1.5},
    ),
    "a token of the environment": (
        {"url": "https://a.example/mcp", "bearer_token_env_var": "TOKEN", "http_headers": {"X-A": "b"}},
        {"url": "https://a.example/mcp", "headers": {"X-A": "b", "Authorization": "Bearer ${TOKEN}"}},
    ),
    "headers of the environment": (
        {"url": "https://a.example/mcp", "env_http_headers": {"X-A": "NAME"}},
        {"url": "https://a.example/mcp", "headers": {"X-A": "${NAME}"}},
    ),
    "variables that are passed on": (
        STDIO | {"env_vars": ["A", {"name": "B"}], "env": {"C": "d"}},
        STDIO | {"env": {"A": "${A}", "B": "${B}", "C": "d"}},
    ),
    "the URL of two that the broker speaks": (
        {"url": "https://a.example/sse", "httpUrl": "https://a.example/mcp"},
        {"url": "https://a.example/mcp"},
    ),
    "a login": (
        {"url": "https://a.example/mcp", "oauth": {"clientId": "me", "callbackPort": 1}},
        {"url": "https://a.example/mcp", "oauth": {"client_id": "me"}},
    ),
    "a login without more": (
        {"serverUrl": "https://a.example/mcp", "oauth": True},
        {"url": "https://a.example/mcp", "oauth": {}},
    ),
    "no login": ({"url": "https://a.example/mcp", "oauth": False}, {"url": "https://a.example/mcp"}),
    "keys of ours": (STDIO | {"lazy": True, "labels": ["private"]}, STDIO | {"lazy": True, "labels": ["private"]}),
    "an input": (STDIO | {"env": {"A": "${input:api-key}"}}, STDIO | {"env": {"A": "${API_KEY}"}}),
    "an input that begins with a digit": (
        STDIO | {"env": {"A": "${input:2fa}"}},
        STDIO | {"env": {"A": "${INPUT_2FA}"}},
    ),
    "a variable in braces": (STDIO | {"env": {"A": "x {env:B} y"}}, STDIO | {"env": {"A": "x ${B} y"}}),
    "a variable without braces": (STDIO | {"env": {"A": "$TOKEN"}}, STDIO | {"env": {"A": "${TOKEN}"}}),
    "variables as we have them": (STDIO | {"env": {"A": "${env:B}${C:-d}"}}, STDIO | {"env": {"A": "${env:B}${C:-d}"}}),
    "the user's folder": ({"command": "${userHome}/x"}, {"command": "/home/me/x"}),
    "a dollar in a text": (STDIO | {"args": ["echo $PATH"]}, STDIO | {"args": ["echo $PATH"]}),
    "a server that serves": ({"command": "python", "args": ["serve"]}, {"command": "python", "args": ["serve"]}),
}


@pytest.mark.parametrize(("written", "expected"), ENTRIES.values(), ids=ENTRIES)
def test_an_entry_becomes_one_of_ours(written, expected):
    made = converted(written, HOME)
    assert made.entry == expected
    assert made.ignored == ()
    assert entry_problems("a", made.entry) == []


def test_what_a_client_allows_is_named_and_not_taken_over():
    made = converted(STDIO | {"autoApprove": ["*"], "trust": True, "timeout": 600}, HOME)
    assert (made.entry, made.ignored) == (STDIO, ("autoApprove", "trust", "timeout"))


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ([], "is not an object"),
        ({}, "has neither a command nor a URL"),
        ({"command": []}, "has neither a command nor a URL"),
        ({"command": "x", "url": "https://a.example/mcp"}, "has both a command and a URL"),
        ({"type": "sse", "url": "https://a.example/sse"}, "speaks sse; the broker speaks stdio and streamable HTTP"),
        ({"command": "x", "args": "-y"}, "'args' must be a list"),
        ({"command": "x", "env": {"A": ["b"]}}, "'env' must be text in quotes"),
        ({"command": "codemode", "args": ["serve", "--config", "x"]}, "is codemode itself"),
        ({"command": "uvx", "args": ["--from", "codemode-broker", "codemode", "serve"]}, "is codemode itself"),
        ({"command": "C:\\bin\\codemode.exe", "args": ["serve"]}, "is codemode itself"),
        ({"command": "x", "cwd": "${workspaceFolder}"}, "uses ${workspaceFolder}, which only its client knows"),
        ({"command": "x", "args": ["${command:pick}"]}, "uses ${command:pick}, which only its client knows"),
    ],
)
def test_what_cannot_be_one_of_ours_says_why(written, reason):
    with pytest.raises(NotConvertedError) as refused:
        converted(written, HOME)
    assert str(refused.value) == reason


def test_paths_of_a_project_keep_their_meaning():
    written = {"command": "./run.sh", "args": ["${workspaceFolder}/data"], "cwd": "sub"}
    expected = {"command": "/src/app/run.sh", "args": ["/src/app/data"], "cwd": "/src/app/sub"}
    assert converted(written, PROJECT).entry == expected
    assert converted(STDIO, PROJECT).entry == STDIO | {"cwd": "/src/app"}
    assert converted({"url": "https://a.example/mcp"}, PROJECT).entry == {"url": "https://a.example/mcp"}
    assert converted({"command": "${CONFIG_DIR}/x"}, PROJECT).entry["command"] == "/src/app/.vscode/x"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "command",
        "args",
        "env",
        "environment",
        "cwd",
        "url",
        "headers",
        "type",
        "oauth",
        "enabled",
        "disabled",
        "tools",
        "includeTools",
        "env_vars",
        "env_http_headers",
        "bearer_token_env_var",
        "startup_timeout_sec",
        "lazy",
    ]
)


WRITTEN = st.dictionaries(KEYS, JSON | st.sampled_from(["x", "https://a.example/mcp", "${A}"]), max_size=6)
REACHED = st.sampled_from([{"command": "x"}, {"url": "https://a.example/mcp"}])


@given(JSON | WRITTEN | st.builds(operator.or_, WRITTEN, REACHED))
def test_whatever_is_written_becomes_an_entry_that_json_has_or_a_reason(written):
    try:
        made = converted(written, HOME)
    except NotConvertedError:
        return
    json.dumps(made.entry)
    assert all(isinstance(problem, str) for problem in entry_problems("a", made.entry))
