"""`codemode mcp add`, `import` and `remove`, and what a person does next."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

SECRET = "s3cr3t-v4lue"  # noqa: S105  # made up


@pytest.fixture
def at_home(codemode, tmp_path):
    """Runs a command of somebody who has this folder."""

    def run(*arguments, **more):
        return codemode(*arguments, HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path / ".config"), **more)

    return run


@pytest.fixture
def own_config(tmp_path):
    return tmp_path / ".config" / "codemode-broker" / "mcp.json"


def written(path):
    return json.loads(Path(path).read_text())["mcpServers"]


def test_a_server_that_was_added_can_be_used_and_removed(at_home, own_config, odd):
    added = at_home("mcp", "add", "odd", "--lazy", "--about", "odd things", "--", odd["command"], *odd["args"])
    assert added.stderr == f"added odd to {own_config}; `codemode tools servers` connects it\n"
    assert stat.S_IMODE(own_config.stat().st_mode) == 0o600
    assert written(own_config) == {"odd": odd | {"lazy": True, "about": "odd things"}}
    states = json.loads(at_home("tools", "servers", "--connect", "--json").stdout)
    assert [(one["name"], one["state"]) for one in states] == [("odd", "ready")]
    assert at_home("mcp", "remove", "odd").stderr == f"removed odd from {own_config}\n"
    assert written(own_config) == {}


@pytest.mark.parametrize("command", ["C://tools/server.exe", "./at://home", "A=https://a.example"])
def test_a_command_that_holds_what_looks_like_a_url_is_one(at_home, own_config, command):
    assert at_home("mcp", "add", "x", "--", command, "https://a.example").returncode == 0
    assert written(own_config) == {"x": {"command": command, "args": ["https://a.example"]}}


def test_a_config_keeps_what_else_is_in_it(at_home, tmp_path):
    path = tmp_path / "own.json"
    path.write_text('{"sandbox": {"pool": 0}, "servers": {"z": {"command": "ü\\ud800"}}, "image": "tools"}')
    path.chmod(0o644)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    added = at_home("mcp", "add", "mail", "https://a.example/mcp", "-H", "X-A: b", "--oauth", "-c", str(link))
    assert f"`codemode tools servers --config {link}` connects it" in added.stderr
    mail = {"url": "https://a.example/mcp", "headers": {"X-A": "b"}, "oauth": {}}
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(json.loads(path.read_text()).items()) == [
        ("sandbox", {"pool": 0}),
        ("mcpServers", {"z": {"command": "ü\ud800"}, "mail": mail}),
        ("image", "tools"),
    ]
    assert "tokens of a login are kept" in at_home("mcp", "remove", "mail", "-c", str(link)).stderr


def test_a_variable_without_a_value_is_taken_from_the_environment_each_time(at_home, own_config):
    added = at_home("mcp", "add", "x", "-e", "TOKEN", "-e", "A=b=c", "--", "x")
    assert "; set TOKEN; " in added.stderr
    assert written(own_config)["x"]["env"] == {"TOKEN": "${TOKEN}", "A": "b=c"}


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["add"], ["Missing argument 'NAME'"]),
        (["add", "x"], ["Missing argument 'URL|COMMAND"]),
        (["add", "x", "npx", "-y", "pkg"], ["No such option: -y. If it is an option of the server, write -- before"]),
        (["add", "1x", "--", "x"], ["a name is 1 to 64 letters"]),
        (["add", "ToolBox", "--", "x"], ["names like 'ToolError' are taken"]),
        (["add", "x", "--header", "A: b", "--", "x"], ["has 'command', so 'headers' has no meaning"]),
        (["add", "x", "ftp://a.example"], ["url: must be a URL that begins with http:// or https://"]),
        (["add", "x", "https://a.example/mcp", "y"], ["nothing stands behind a URL", "with --header"]),
        (["add", "x", "https://a.example/mcp", "-e", "A=b"], ["has 'url', so 'env' has no meaning"]),
        (["add", "x", "https://a.example/mcp", "-H", SECRET], ["--header has no ':' in it", "'Name: value'"]),
        (["add", "x", "https://a.example/mcp", "-H", f"A: {SECRET}\nB"], ["headers.A: must be printable ASCII"]),
        (["add", "x", "-e", "A=${}", "--", "x"], ["${} is not a variable"]),
        (["add", "there", "--", "y"], ["has a server there already", "--replace"]),
        (["remove", "y"], ["has no server 'y'", "It has there."]),
        (["remove", "there", "--config", "none.json"], ["there is no config none.json", "--config FILE"]),
        (["import", "--from", "nope"], ["is no client that is known, and no file", "Known are claude-code, "]),
        (["import", "--from", "zed"], ["zed is not configured here", "--from also takes the path of its file."]),
        (["import", "--from", "mcp.json", "y"], ["mcp.json has no server 'y'", "It has there."]),
        (["import"], ["no other MCP client is configured here", "adds a server."]),
    ],
)
def test_wrong_usage_is_explained_and_nothing_is_written(at_home, write_config, arguments, parts):
    path = write_config({"there": {"command": "x"}})
    before = Path(path).read_text()
    finished = at_home("mcp", *arguments, CODEMODE_CONFIG=path)
    assert finished.returncode == 2, finished
    assert "Traceback" not in finished.stderr
    for part in parts:
        assert part in finished.stderr
    assert SECRET not in finished.stderr
    assert Path(path).read_text() == before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mcpServers": []}', '{"mcpServers": {}, "mcpServers": {}}'])
def test_a_config_that_cannot_be_read_is_left_as_it_is(at_home, tmp_path, text):
    path = tmp_path / "own.json"
    path.write_text(text)
    finished = at_home("mcp", "add", "x", "--config", str(path), "--", "x")
    assert finished.returncode == 2
    assert finished.stderr.startswith(f"error: {path}:")
    assert path.read_text() == text


def test_a_config_that_cannot_be_written_is_told(at_home, tmp_path):
    (tmp_path / "file").write_text("")
    finished = at_home("mcp", "add", "x", "--config", str(tmp_path / "file" / "mcp.json"), "--", "x")
    assert finished.returncode == 2
    assert f"{tmp_path}/file is not a folder" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_the_servers_of_other_clients_are_shown_and_taken_over(at_home, own_config, tmp_path, odd):
    servers = {
        "odd one": odd | {"autoApprove": ["*"]},
        "mail": {"type": "http", "url": "https://a.example/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}},
        "old": {"type": "sse", "url": "https://a.example/sse"},
        "codemode": {"command": "codemode", "args": ["serve"]},
    }
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text('[mcp_servers.docs]\ncommand = "docs"\nenv_vars = ["DOCS_URL"]\n')

    shown = at_home("mcp", "import")
    assert shown.stdout == (
        f"claude-code\todd one, mail, old, codemode\t{tmp_path}/.claude.json\n"
        f"codex\tdocs\t{tmp_path}/.codex/config.toml\n"
    )
    assert shown.stderr == "`codemode mcp import --from claude-code` takes its servers over\n"
    assert not own_config.exists()

    tried = at_home("mcp", "import", "--from", "claude-code", "--dry-run")
    assert tried.stderr == f"2 servers would be written to {own_config}\n"
    assert not own_config.exists()

    taken = at_home("mcp", "import", "--from", "claude-code")
    assert taken.stdout == (
        "odd_one\tadded\twas 'odd one'; without autoApprove\n"
        "mail\tadded\t\n"
        "old\tleft out\tspeaks sse; the broker speaks stdio and streamable HTTP\n"
        "codemode\tleft out\tis codemode itself\n"
    )
    assert taken.stderr == f"2 servers written to {own_config}; `codemode tools servers` connects them\n"
    assert SECRET not in taken.stdout + taken.stderr
    assert written(own_config) == {
        "odd_one": odd,
        "mail": {"url": "https://a.example/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}},
    }

    assert at_home("mcp", "import", "--from", "codex").stdout == "docs\tadded\tset DOCS_URL\n"
    again = at_home("mcp", "import", "--from", "claude-code", "odd one")
    assert (again.stdout, again.stderr) == ("odd_one\tis there\t\n", f"no servers written to {own_config}\n")
    script = "from tools import odd_one\nprint(await odd_one.echo(text='taken over'))"
    finished = at_home("run", "-", "--allow", "odd_one.*", stdin=script, DOCS_URL="x")
    assert (finished.stdout, finished.returncode) == ("taken over\n", 0), finished.stderr


def test_a_file_of_a_project_is_taken_only_when_it_is_named(at_home, own_config, tmp_path):
    folder = tmp_path / ".vscode"
    folder.mkdir()
    (folder / "mcp.json").write_text('{"servers": {"here": {"command": "./run.sh"}, /* mine */ }}')
    assert at_home("mcp", "import").returncode == 2
    assert at_home("mcp", "import", "--from", ".vscode/mcp.json").returncode == 0
    assert written(own_config) == {"here": {"command": f"{tmp_path}/run.sh", "cwd": str(tmp_path)}}


def test_what_to_write_for_a_file_of_variables_is_said(at_home, own_config, tmp_path):
    (tmp_path / "mcp.json").write_text(
        '{"servers": {"here": {"command": "run", "envFile": "${workspaceFolder}/.env"}}}'
    )
    taken = at_home("mcp", "import", "--from", "mcp.json")
    assert taken.stdout == (
        "here\tadded\twithout envFile; "
        'write the variables of that file under "env", each as "NAME": "${NAME}", and set them\n'
    )
    assert written(own_config) == {"here": {"command": "run", "cwd": str(tmp_path)}}


def test_a_server_of_a_name_that_is_taken_is_left_out_unless_it_replaces_the_other(at_home, write_config, tmp_path):
    own = write_config({"a_b": {"command": "mine"}})
    other = tmp_path / "other" / "mcp.json"
    other.parent.mkdir()
    other.write_text(
        json.dumps({"mcpServers": {"a_b": {"url": "https://a.example"}, "a b": {"url": "https://b.example"}}})
    )
    import_it = ["mcp", "import", "--from", str(other), "--config", own]
    left_out = at_home(*import_it, "a_b")
    assert "a_b\tleft out\tanother server has this name; --replace puts this one in its place" in left_out.stdout
    assert written(own) == {"a_b": {"command": "mine"}}
    assert at_home(*import_it, "--replace").stdout == "a_b\treplaced\t\na_b_2\tadded\twas 'a b'\n"
    assert written(own) == {"a_b": {"url": "https://a.example"}, "a_b_2": {"url": "https://b.example"}}


def test_tab_completes_the_clients_that_are_configured(at_home, tmp_path):
    (tmp_path / ".claude.json").write_text("{}")
    asked = {"_CODEMODE_COMPLETE": "complete_bash", "COMP_WORDS": "codemode mcp import --from ", "COMP_CWORD": "4"}
    assert at_home(**asked).stdout.split() == ["claude-code"]


def test_names_of_servers_cannot_steer_a_terminal(at_home, tmp_path):
    path = tmp_path / "other.json"
    editor = {"command": "${command:\x1b[2J}"}
    path.write_text(json.dumps({"mcpServers": {"\x1b[2J\u202e": {"command": "x"}, "\x1b]0;": [], "a": editor}}))
    taken = at_home("mcp", "import", "--from", str(path), "--config", os.fspath(tmp_path / "own.json"))
    assert taken.stdout == (
        "server_2J\tadded\twas '\\\\x1b[2J\\\\u202e'\n"
        "\\x1b]0;\tleft out\tis not an object\n"
        "a\tleft out\tuses ${command:\\x1b[2J}, which only its client knows\n"
    )
    path.write_text("{\x1b[2J}")
    refused = at_home("mcp", "import", "--from", str(path))
    assert refused.returncode == 2
    assert "\x1b" not in refused.stderr
