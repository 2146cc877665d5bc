"""The files of clients, as each of them writes its own."""

from __future__ import annotations

import json
import os

import pytest

from broker.config.clients.client_file import servers_of
from broker.config.clients.known_clients import CLIENTS, client_files
from broker.errors import ConfigError

SERVER = {"command": "x"}
FORMS = {
    "mcpServers beside other keys": ("a.json", json.dumps({"theme": 1, "mcpServers": {"a": SERVER}})),
    "servers": ("a.json", json.dumps({"inputs": [], "servers": {"a": SERVER}})),
    "mcp": ("a.json", json.dumps({"mcp": {"a": SERVER}})),
    "mcp.servers": ("a.json", json.dumps({"mcp": {"servers": {"a": SERVER}}})),
    "context_servers": ("a.json", json.dumps({"context_servers": {"a": SERVER}})),
    "comments and commas": ("a.jsonc", '// mine\n{"mcpServers": {"a": {"command": "x",},}, /* end */ }'),
    "TOML": ("a.toml", 'model = "m"\n[mcp_servers.a]\ncommand = "x"\n'),
    "a byte order mark": ("a.json", "\ufeff" + json.dumps({"mcpServers": {"a": SERVER}})),
}


@pytest.mark.parametrize(("name", "text"), FORMS.values(), ids=FORMS)
def test_servers_are_found_in_what_clients_write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert servers_of(path) == {"a": SERVER}


def test_servers_of_the_folder_we_are_in_are_found_beside_those_of_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    projects = {os.fspath(tmp_path): {"mcpServers": {"here": SERVER}}, "/elsewhere": {"mcpServers": {"there": SERVER}}}
    path = tmp_path / ".claude.json"
    path.write_text(json.dumps({"mcpServers": {"a": SERVER}, "projects": projects}))
    assert servers_of(path) == {"a": SERVER, "here": SERVER}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", "", "is not JSON: "),
        ("a.json", '{\n"a": oops}', 'is not JSON: line 2: Unexpected "o" at column 6'),
        ("a.json", "[]", "has no servers: it is not an object"),
        ("a.json", "[" * 200_000, "is nested too deep"),
        ("a.json", '{"a": ' + "1" * 5_000 + "}", "is not JSON: "),
        ("a.json", "// " + "x" * 300_000, "is not JSON: "),
        ("a.toml", "a = = 1", "is not TOML: "),
        ("a.toml", "a = " + "[" * 100_000, "is not TOML: "),
    ],
)
def test_a_file_of_another_kind_is_told(tmp_path, name, text, problem):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError) as told:
        servers_of(path)
    assert str(told.value).startswith(f"{path}: {problem}")
    assert "\n" not in str(told.value)


def test_a_file_without_servers_has_none(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"theme": "dark"}')
    assert servers_of(path) == {}


def test_every_client_has_a_file_and_variables_move_those_that_a_client_lets_them_move(tmp_path):
    moved = {name: str(tmp_path) for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME")}
    files = client_files(moved)
    assert tuple(files) == CLIENTS
    assert {
        path.relative_to(tmp_path).as_posix() for paths in files.values() for path in paths if tmp_path in path.parents
    } >= {
        ".claude.json",
        "config.toml",
        "mcp-config.json",
        "opencode/opencode.json",
        "opencode/opencode.jsonc",
    }
