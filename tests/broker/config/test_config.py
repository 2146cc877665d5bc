from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from broker.audit.settings import AuditSettings
from broker.config.config import Config
from broker.config.value_faults import words_for
from broker.errors import ConfigError
from broker.server.settings import ServeSettings
from broker.upstreams.server_config import ServerConfig

FOLDER = Path("/etc/codemode")
SECRET = "s3cr3t-v4lue"  # noqa: S105  # made up


def parse(document, **environment) -> Config:
    text = document if isinstance(document, str) else json.dumps(document)
    return Config.parse(text, source="mcp.json", folder=FOLDER, environment=environment)


def servers(**entries):
    return {"mcpServers": entries}


WRONG = {
    "nothing": (" \n", 'mcp.json: is empty; must be a JSON object, as in {"mcpServers": {…}}'),
    "syntax": ('{"mcpServers": {\n  "git": }', "mcp.json:2:10: is not JSON: expecting value"),
    "a comment": (
        '{// mine\n"mcpServers": {}}',
        (
            "mcp.json:1:2: is not JSON: expecting property name enclosed in double quotes; JSON has no comments; "
            "remove it"
        ),
    ),
    "not an object": ("[]", 'mcp.json: must be a JSON object, as in {"mcpServers": {…}}'),
    "too deep": ("[" * 100_000, "mcp.json: is nested too deep"),
    "too deep for what reads it": (f'{{"policy": {"[" * 600}{"]" * 600}}}', "mcp.json: is nested too deep"),
    "a number without end": (f'{{"image": {"1" * 5_000}}}', "mcp.json: has a number that is too long"),
    "empty": ({}, "mcp.json: 'mcpServers' is missing"),
    "servers of another kind": ({"mcpServers": []}, "mcp.json: 'mcpServers': must be a JSON object"),
    "a server twice": (
        '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}',
        "mcp.json: the key 'a' is given twice in one object",
    ),
    "unknown top key": (
        {"mcpServers": {}, "mcpServer": {}},
        "mcp.json: unknown key 'mcpServer'; did you mean 'mcpServers'?",
    ),
    "unknown key": (
        servers(git={"command": "x", "arguments": []}),
        "mcp.json: server 'git': unknown key 'arguments'; did you mean 'args'?",
    ),
    "a key of another program for the tools": (
        servers(git={"command": "x", "tools": ["*"]}),
        "mcp.json: server 'git': unknown key 'tools': write 'allow_tools' for those to offer; without it all are",
    ),
    "the servers under a mistyped key": (
        {"mcpservers": {}},
        "mcp.json: unknown key 'mcpservers'; did you mean 'mcpServers'?",
    ),
    "a key like nothing": (
        servers(git={"command": "x", "zzz": 1}),
        f"mcp.json: server 'git': unknown key 'zzz'; known are {', '.join(ServerConfig.model_fields)}",
    ),
    "a key of what is inside a section": (
        {"mcpServers": {}, "sandbox": {"wall_seconds": 60}},
        "mcp.json: sandbox: unknown key 'wall_seconds'; it belongs into 'limits'",
    ),
    "a key of what may be inside a section": (
        {"mcpServers": {}, "serve": {"issuer": "https://login.example"}},
        "mcp.json: serve: unknown key 'issuer'; it belongs into 'oauth'",
    ),
    "keys of categories": (
        {
            "mcpServers": {},
            "disclosure": {
                "categories": {
                    "a": "git.*",
                    "b": {"tools": ["git.*"], "desription": "history"},
                    "c": {"description": "history"},
                    "d": [""],
                }
            },
        },
        (
            "mcp.json: 4 problems\n"
            "  - disclosure.categories.a: must be a list of patterns, or an object with 'tools' and a 'description'\n"
            "  - disclosure.categories.b: unknown key 'desription'; did you mean 'description'?\n"
            "  - disclosure.categories.c.tools: is missing\n"
            "  - disclosure.categories.d.tools.0: is empty"
        ),
    ),
    "server of another kind": (servers(git=3), "mcp.json: server 'git': must be a JSON object"),
    "no transport": (
        servers(git={}),
        "mcp.json: server 'git' has neither of 'command' (a program to start) and 'url' (HTTP); give one",
    ),
    "two transports": (
        servers(git={"command": "x", "url": "http://h/mcp"}),
        "mcp.json: server 'git' has both of 'command' (a program to start) and 'url' (HTTP); give one",
    ),
    "headers of a program": (
        servers(git={"command": "x", "headers": {"A": SECRET}}),
        "mcp.json: server 'git' has 'command', so 'headers' has no meaning; remove it",
    ),
    "sse": (
        servers(old={"type": "sse", "url": "http://h/sse"}),
        "mcp.json: server 'old': type 'sse' is the transport of 2024, not supported; give the streamable HTTP 'url'",
    ),
    "wrong url": (
        servers(web={"url": f"ftp://{SECRET}@h"}),
        "mcp.json: server 'web': url: must be a URL that begins with http:// or https://",
    ),
    "a url that is no text": (
        servers(web={"url": "http://h/\ud800"}),
        "mcp.json: server 'web': url: must not hold half of a surrogate pair",
    ),
    "urls that lead nowhere": (
        servers(
            a={"url": f"http://{SECRET}@h/\nmcp"},
            b={"url": "http://h:999999/mcp"},
            c={"url": "http://h:0/mcp"},
            d={"url": "http://[h]/mcp"},
            e={"url": "http://:80/mcp"},
        )
        | {"serve": {"oauth": {"issuer": "https://h:x", "resource": "https://h/\x7f"}}},
        "mcp.json: 7 problems\n"
        "  - server 'a': url: must not hold a line break or another control character\n"
        + "".join(
            f"  - server {name!r}: url: must name a host, and a port only from 1 to 65535\n"
            for name in ("b", "c", "d", "e")
        )
        + "  - serve.oauth.issuer: must name a host, and a port only from 1 to 65535\n"
        "  - serve.oauth.resource: must not hold a line break or another control character",
    ),
    "a program's text with NUL": (
        servers(git={"command": "x\0", "args": ["\0"], "env": {"KEY": f"{SECRET}\0"}, "cwd": "\0"}),
        "mcp.json: 4 problems\n"
        + "\n".join(
            f"  - server 'git': {field}: must not hold a NUL character"
            for field in ("command", "args.0", "env.KEY", "cwd")
        ),
    ),
    "a program's text that the system cannot be given": (
        servers(git={"command": "x", "args": ["\ud800"]}),
        "mcp.json: server 'git': args.0: must not hold half of a surrogate pair",
    ),
    "a variable of an impossible name": (
        servers(git={"command": "x", "env": {"A=B": SECRET}}),
        "mcp.json: server 'git': env.A=B: must be the name of a variable, without '='",
    ),
    "a header of an impossible name": (
        servers(web={"url": "http://h/mcp", "headers": {"X Key": SECRET}}),
        "mcp.json: server 'web': headers.X Key: must be the name of a header: letters, digits and '-'",
    ),
    "a header with a line break behind it": (
        servers(web={"url": "http://h/mcp", "headers": {"Authorization": f"Bearer {SECRET}\n"}}),
        (
            "mcp.json: server 'web': headers.Authorization: must be printable ASCII characters, with no space or line "
            "break at either end"
        ),
    ),
    "args as text": (
        servers(git={"command": "x", "args": "-v"}),
        "mcp.json: server 'git': args: must be a list, as in [\"--verbose\"]",
    ),
    "env number": (
        servers(git={"command": "x", "env": {"PORT": 80}}),
        "mcp.json: server 'git': env.PORT: must be text in quotes",
    ),
    "a command with its arguments": (
        servers(git={"command": ["uvx", "mcp-server-git"]}),
        "mcp.json: server 'git': command: must be text; what follows the program goes into 'args'",
    ),
    "mode": (
        servers(git={"command": "x", "mode": "new"}),
        "mcp.json: server 'git': mode: must be 'auto', 'legacy' or '2026-07-28'",
    ),
    "timeout": (
        servers(git={"command": "x", "call_timeout_seconds": 0}),
        "mcp.json: server 'git': call_timeout_seconds: must be greater than 0",
    ),
    "numbers as words": (
        {"mcpServers": {}, "serve": {"sessions": "many", "grace_seconds": "2s"}, "recordings": {"max_mib": 1.5}},
        (
            "mcp.json: 3 problems\n"
            "  - recordings.max_mib: must be a whole number\n"
            "  - serve.sessions: must be a whole number\n"
            "  - serve.grace_seconds: must be a number"
        ),
    ),
    "neither true nor false": (
        servers(git={"command": "x", "lazy": "sometimes"}),
        "mcp.json: server 'git': lazy: must be true or false",
    ),
    "a short token": (
        {"mcpServers": {}, "serve": {"tokens": {"ada": SECRET}}},
        "mcp.json: serve.tokens.ada: must have at least 16 characters",
    ),
    "a token that no client can send": (
        {"mcpServers": {}, "serve": {"tokens": {"ada": "\u00e9" * 16, "bob": f"{'b' * 16}\n"}}},
        (
            "mcp.json: 2 problems\n"
            "  - serve.tokens.ada: must be printable ASCII characters, with no space or line break at either end\n"
            "  - serve.tokens.bob: must be printable ASCII characters, with no space or line break at either end"
        ),
    ),
    "a token of two names": (
        {"mcpServers": {}, "serve": {"tokens": {"ada": "a" * 16, "bob": "a" * 16}}},
        "mcp.json: serve.tokens: must not give two names the same token: both would be one principal",
    ),
    "an issuer alone": (
        {"mcpServers": {}, "serve": {"oauth": {"issuer": "login.example"}}},
        (
            "mcp.json: 2 problems\n"
            "  - serve.oauth.issuer: must be a URL that begins with http:// or https://\n"
            "  - serve.oauth.resource: is missing"
        ),
    ),
    "empty texts": (
        servers(git={"command": "", "about": ""}),
        "mcp.json: 2 problems\n  - server 'git': command: is empty\n  - server 'git': about: is empty",
    ),
    "a folder that is no text": (servers(git={"command": "x", "cwd": 3}), "mcp.json: server 'git': cwd: must be text"),
    "no name of an image": (
        {"mcpServers": {}, "image": "My image"},
        "mcp.json: image: must be the name of an image: small letters, digits, '-' and '_'",
    ),
    "no name of a class": (
        {"mcpServers": {}, "disclosure": {"embedder": "mine.Embedder"}},
        "mcp.json: disclosure.embedder: must name a class as package.module:Name",
    ),
    "less than a hundredth of the window": (
        {"mcpServers": {}, "disclosure": {"describe": "auto", "context_share": 0.009}},
        "mcp.json: disclosure.context_share: must be greater than or equal to 0.01",
    ),
    "more than a twentieth of the window": (
        {"mcpServers": {}, "disclosure": {"describe": "auto", "context_share": 0.051}},
        "mcp.json: disclosure.context_share: must be less than or equal to 0.05",
    ),
    "a label of two words": (
        servers(git={"command": "x", "labels": ["very private"]}),
        "mcp.json: server 'git': labels.0: must be a word in small letters, as 'private'",
    ),
    "unknown keys of oauth": (
        servers(web={"url": "http://h/mcp", "oauth": {"clientid": "x"}})
        | {"serve": {"oauth": {"issuer": "https://h", "resource": "https://h", "jwks": "https://h"}}},
        (
            "mcp.json: 2 problems\n"
            "  - server 'web': oauth: unknown key 'clientid'; did you mean 'client_id'?\n"
            "  - serve.oauth: unknown key 'jwks'; did you mean 'jwks_url'?"
        ),
    ),
    "half an account": (
        servers(web={"url": "http://h/mcp", "oauth": {"grant": "client_credentials", "client_id": "me"}}),
        "mcp.json: server 'web': oauth: client_credentials needs client_secret, issuer",
    ),
    "unset variable": (
        servers(git={"command": "x", "env": {"TOKEN": "${GIT_TOKEN}"}}),
        (
            "mcp.json: server 'git': env.TOKEN: the environment variable GIT_TOKEN is not set; set it or write "
            "${GIT_TOKEN:-default}"
        ),
    ),
    "a reference behind a word": (
        servers(web={"url": "http://h/mcp", "headers": {"Authorization": "Bearer keyring://mail/me"}}),
        (
            "mcp.json: server 'web': headers.Authorization: env:// and keyring:// stand for a whole value; write "
            "Bearer ${NAME}"
        ),
    ),
    "not a variable": (
        servers(git={"command": "${HOME/x}"}),
        "mcp.json: server 'git': command: ${HOME/x} is not a variable; write ${NAME} or ${NAME:-default}",
    ),
    "a variable without an end": (
        servers(git={"command": "x", "env": {"A": "${B:-c}-${TOKEN:-of a secret", "C": "${", "D": "${1"}}),
        "mcp.json: server 'git': env.A: ${TOKEN has no closing brace; write ${TOKEN}",
    ),
    "a variable of an editor": (
        servers(git={"command": "${workspaceFolder}/x"}),
        (
            "mcp.json: server 'git': command: ${workspaceFolder} is known only to an editor; write the path, or "
            "${CONFIG_DIR} for the folder of this file"
        ),
    ),
    "an input of an editor": (
        servers(git={"command": "x", "env": {"KEY": "${input:key}"}}),
        (
            "mcp.json: server 'git': env.KEY: ${input:key} is asked for by an editor; write ${NAME} and set that "
            "variable, or keyring://SERVICE/USER"
        ),
    ),
    "round quotes": (
        '{"mcpServers": \u201cx\u201d}',
        'mcp.json:1:16: is not JSON: expecting value; write straight double quotes (")',
    ),
    "servers at the top": (
        {"git": {"command": "x"}, "web": {"url": "http://h/mcp"}},
        """mcp.json: the servers have to stand in 'mcpServers': {"mcpServers": {"git": …}}""",
    ),
    "servers of VS Code": (
        {"servers": {"git": {"command": "x"}}},
        "mcp.json: unknown key 'servers'; did you mean 'mcpServers'?",
    ),
    "a whole config of another program": (
        {"mcpServers": {}, "globalShortcut": ""},
        (
            "mcp.json: unknown key 'globalShortcut'; known are mcpServers, image, sandbox, recordings, "
            "serve, disclosure, policy, audit. If this is the config of another client, "
            "`codemode mcp import --from FILE` takes its servers over"
        ),
    ),
    "tools that another program takes": (
        servers(git={"command": "x", "includeTools": ["a"]}),
        "mcp.json: server 'git': unknown key 'includeTools'; did you mean 'allow_tools'?",
    ),
    "a switch the other way round": (
        servers(git={"command": "x", "enabled": True}),
        (
            "mcp.json: server 'git': unknown key 'enabled': write \"disabled\": true to leave the server out, "
            "else remove it"
        ),
    ),
    "leave that another program gives": (
        servers(git={"command": "x", "alwaysAllow": ["a"]}),
        (
            "mcp.json: server 'git': unknown key 'alwaysAllow': 'policy' or --allow decides what may be "
            "called; remove it"
        ),
    ),
    "name": (
        servers(**{"my server": {"command": "x"}}),
        (
            "mcp.json: server 'my server': a name is 1 to 64 letters, digits, '_' and '-' and begins with a letter; "
            "scripts import it"
        ),
    ),
    "taken name": (
        servers(ToolError={"command": "x"}),
        "mcp.json: server 'ToolError': names like 'ToolError' are taken in scripts; choose another",
    ),
}


@pytest.mark.parametrize(("document", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_config_says_what_to_change(document, message):
    with pytest.raises(ConfigError) as caught:
        parse(document)
    assert str(caught.value) == message
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(("given", "share"), [({}, 0.03), *(({"context_share": one}, one) for one in (0.01, 0.05))])
def test_definitions_may_take_one_to_five_hundredths_of_the_window_and_three_where_nobody_says(given, share):
    config = parse({"mcpServers": {}, "disclosure": {"describe": "auto", **given}})
    assert (config.disclosure.describe, config.disclosure.context_share) == ("auto", share)


@pytest.mark.parametrize(
    ("entry", "seconds"),
    [
        ({"command": "python", "args": ["npx"]}, 10),
        ({"url": "https://127.0.0.1/mcp"}, 10),
        ({"command": "npx", "args": ["-y", "some-server"]}, 30),
        ({"command": "/usr/local/bin/uvx"}, 30),
        ({"command": "Docker.exe"}, 30),
        ({"command": "npx", "connect_timeout_seconds": 5}, 5),
        ({"command": "python", "connect_timeout_seconds": 90}, 90),
    ],
)
def test_a_server_has_ten_seconds_to_be_ready_and_more_if_it_may_be_downloaded_first(entry, seconds):
    config = parse(servers(desk=entry))
    assert config.servers["desk"].connect_timeout_seconds == seconds


@pytest.mark.filterwarnings("ignore:Default value:pydantic.json_schema.PydanticJsonSchemaWarning")
def test_each_form_that_a_text_must_have_is_said_in_words():
    found = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(Config.model_json_schema()))
    assert len(set(found)) > 3
    for pattern in map(json.loads, set(found)):
        adapter = TypeAdapter(Annotated[str, Field(pattern=pattern)])
        with pytest.raises(ValidationError) as caught:
            adapter.validate_python("\n")
        assert re.fullmatch("(must|is not) .*", words_for(caught.value.errors()[0]))


@pytest.mark.parametrize("value", ["", SECRET, f"Bearer {SECRET}", "a\tb", "~"])
def test_a_header_is_taken_as_it_is(value):
    assert parse(servers(web={"url": "http://h/mcp", "headers": {"X-Key": value}})).servers["web"].headers == {
        "X-Key": value
    }


@pytest.mark.skipif(sys.platform == "win32", reason="texts of the system are Unicode there")
def test_texts_of_the_system_that_are_not_utf_8_are_taken_as_they_are():
    folder, key = os.fsdecode(b"/home/\xfcser"), os.fsdecode(b"s3cr3t\xff")
    document = servers(git={"command": "${FOLDER}/x", "args": ["${FOLDER}"], "env": {"KEY": "${KEY}"}})
    config = parse(document, FOLDER=folder, KEY=key)
    git = config.servers["git"]
    assert (git.command, git.args, git.env) == (f"{folder}/x", (folder,), {"KEY": key})
    assert config.secrets == {folder, key}


@pytest.mark.parametrize(("document", "place"), [('{"a": {"b": 1,}}', "1:1[45]"), ('{\n  "a": 1,\n}', "[23]:[19]")])
def test_a_trailing_comma_is_named_where_it_is(document, place):
    """Python points at the comma since 3.13, and before at what follows it."""
    with pytest.raises(ConfigError) as caught:
        parse(document)
    assert re.fullmatch(rf"mcp\.json:{place}: is not JSON: .*\bcomma\b.*", str(caught.value))


def test_data_that_json_has_no_form_for_is_named_with_its_place():
    git = {"command": Path("/bin/git"), "args": ("-v", {"a"}), "env": {"KEY": SECRET.encode(), 5: SECRET}}
    with pytest.raises(ConfigError) as caught:
        Config.of_data({"mcpServers": {"git": git}, "policy": object()})
    kinds = "must be text, a number, True, False, None, a list or a dict, and is of type"
    assert str(caught.value).splitlines() == [
        "config: 5 problems",
        f"  - server 'git': command: {kinds} {type(Path()).__name__}",
        f"  - server 'git': args.1: {kinds} set",
        f"  - server 'git': env.KEY: {kinds} bytes",
        "  - server 'git': env.5: its key must be text, and is of type int",
        f"  - policy: {kinds} object",
    ]


@pytest.mark.parametrize("deep", [True, False])
def test_data_that_goes_on_and_on_is_refused(deep):
    policy: dict[str, Any] = {}
    policy["rules"] = [policy] if deep else int("1" * 4_000) ** 2
    with pytest.raises(ConfigError, match="is nested too deep" if deep else "has a number that is too long"):
        Config.of_data({"mcpServers": {}, "policy": policy})


def test_data_is_read_as_a_file_of_the_same_form():
    data = {"mcpServers": {"git": {"command": "x", "args": ("-v",), "lazy": True}}}
    assert Config.of_data(MappingProxyType(data)).servers == {"git": ServerConfig(command="x", args=("-v",), lazy=True)}


def test_data_has_no_servers_if_it_names_none():
    assert Config.of_data({"audit": {"days": 9}}) == Config(audit=AuditSettings(days=9))
    with pytest.raises(ConfigError, match="unknown key 'mcpServer'; did you mean 'mcpServers'"):
        Config.of_data({"mcpServer": {}})
    for data, said in (
        ({"servers": {}}, "config: unknown key 'servers'; did you mean 'mcpServers'?"),
        ({"sandboxx": {}}, "config: unknown key 'sandboxx'; did you mean 'sandbox'?"),
        (
            {"git": {"command": "x"}},
            """config: the servers have to stand in 'mcpServers': {"mcpServers": {"git": …}}""",
        ),
    ):
        with pytest.raises(ConfigError) as caught:
            Config.of_data(data)
        assert str(caught.value) == said


@pytest.mark.parametrize("key", ["servers", "context_servers", "mcp"])
def test_servers_under_the_key_of_another_program_are_read_as_ours_to_tell_all_at_once(key):
    document = {"inputs": [], "theme": "dark", key: {"git": {"comand": "x"}, "my web": {"url": "h"}}}
    with pytest.raises(ConfigError) as caught:
        parse(document)
    said = str(caught.value).splitlines()
    assert said[1] == f"  - unknown key '{key}'; did you mean 'mcpServers'?"
    assert said[2].startswith("  - unknown keys 'inputs', 'theme'; known are mcpServers, image")
    assert said[3] == "  - server 'git': unknown key 'comand'; did you mean 'command'?"
    assert said[4].startswith("  - server 'my web': a name is 1 to 64 letters")
    assert "  - server 'my web': url: must be a URL that begins with http:// or https://" in said


def test_several_problems_are_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        parse(servers(a={"comand": "x"}, b={"command": "${X}"}))
    assert str(caught.value).splitlines() == [
        "mcp.json: 2 problems",
        "  - server 'a': unknown key 'comand'; did you mean 'command'?",
        "  - server 'b': command: the environment variable X is not set; set it or write ${X:-default}",
    ]


def test_what_people_have_is_read():
    config = parse(
        servers(
            files={"type": "stdio", "command": "npx", "args": ["-y", "pkg", "${CONFIG_DIR}/x"], "cwd": "data"},
            web={"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            off={"command": "x", "disabled": True, "env": {"TOKEN": "${env:TOKEN}"}},
        ),
        TOKEN=SECRET,
    )
    assert config.servers["files"].args == ("-y", "pkg", "/etc/codemode/x")
    assert config.servers["files"].cwd == Path("/etc/codemode/data")
    assert config.servers["web"].headers == {"Authorization": f"Bearer {SECRET}"}
    assert config.servers["off"].disabled
    assert config.servers["off"].env == {"TOKEN": SECRET}


@pytest.mark.parametrize(
    ("text", "environment", "value"),
    [
        ("${A}", {"A": "1"}, "1"),
        ("${A:-2}", {}, "2"),
        ("${A:-2}", {"A": ""}, "2"),
        ("${A}", {"A": ""}, ""),
        ("${A:-}x", {}, "x"),
        ("${A}-${B:-b}", {"A": "${B}"}, "${B}-b"),
        ("$A {A} $$", {}, "$A {A} $$"),
        ("${A}${", {"A": "1"}, "1${"),
        pytest.param("${" * 200_000, {}, "${" * 200_000, id="openings without an end"),
    ],
)
def test_variables_are_replaced_once(text, environment, value):
    config = parse(servers(git={"command": "x", "args": [text]}), **environment)
    assert config.servers["git"].args == (value,)


def test_secrets_are_known_and_not_shown():
    config = parse(
        servers(
            a={"command": "x", "env": {"API_KEY": "written-key", "DATA": "/srv/data"}},
            b={"url": "https://h", "headers": {"Authorization": "Bearer written-token"}},
            c={"command": "${PROGRAM}"},
        ),
        PROGRAM=SECRET,
    )
    assert config.secrets == {"written-key", "Bearer written-token", "written-token", SECRET}
    assert "written" not in repr(config)


def test_secrets_are_known_of_a_config_that_a_program_makes():
    web = ServerConfig(url="https://h", headers={"Authorization": "Bearer written-token", "X": "short"})
    config = Config(servers={"web": web}, serve=ServeSettings(tokens={"ada": "token-of-sixteen-characters"}))
    assert config.secrets == {"Bearer written-token", "written-token", "token-of-sixteen-characters"}
    assert Config().secrets == frozenset()


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(ConfigError, match="there is no such file"):
        Config.load(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="cannot be read: its name has a NUL character"):
        Config.load("mcp.json\0")
    with pytest.raises(ConfigError, match="is a directory; name the file in it"):
        Config.load(tmp_path)


def test_a_path_from_a_folder_that_was_removed_is_told(tmp_path, monkeypatch):
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}}')
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    assert Config.load("../mcp.json").servers == {}
    (tmp_path / "gone").rmdir()
    for path in ("none.json", "../mcp.json"):
        with pytest.raises(ConfigError, match=r"no such file: the folder it counts from was removed$"):
            Config.load(path)


def test_a_byte_order_mark_is_no_fault(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {}}', encoding="utf-8-sig")
    assert Config.load(path).servers == {}


def test_a_config_can_be_written_in_code():
    assert Config(servers={"git": ServerConfig(command="x")}).servers["git"].command == "x"
