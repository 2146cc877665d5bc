"""Wrong arguments, configs and servers: exit code 2 where nothing can run, and the other servers stay usable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from broker import ServerConfig
from broker.cli.configured import LISTING_SECONDS
from sandbox.limits import MIB

RECORDING = Path(__file__).parents[3] / "examples" / "history" / "recording.jsonl"

CALL_ECHO = "from tools import odd\nprint(await odd.echo(text='still here'))"


def assert_explained(finished, *parts, code=2):
    assert finished.returncode == code, finished.stderr
    assert "Traceback" not in finished.stderr
    for part in parts:
        assert part in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["run"], ["SCRIPT"]),
        (["run", "-", "--alow", "x"], ["--alow", "--allow"]),
        (["rum", "-"], ["'rum'", "'run'"]),
        (["run", "absent.py"], ["absent.py", "No such file"]),
        (["run", "."], [". is a directory", "Name the script in it"]),
        (["run", ""], [". is a directory", "Name the script in it"]),
        (["replay", ""], ["there is no recording ''"]),
        (["show", ""], ["there is no recording ''"]),
        (["show", "."], [".: is a directory; name a file in it"]),
        (["tools", "list", "--config", "."], [".: is a directory; name the file in it"]),
        (["run", "-", "--timeout", "soon"], ["--timeout", "number"]),
        (["run", "-", "--timeout", "0"], ["--timeout", "positive"]),
        (["run", "-", "--timeout", "nan"], ["--timeout"]),
        (["run", "-", "--timeout", "-1"], ["--timeout", "positive"]),
        (["run", "-", "--memory", "1"], ["--memory must be at least 64 (the interpreter itself), not 1"]),
        (["run", "-", "--check", "of"], ["'--check': 'of' is not one of 'error', 'warn', 'off'"]),
        (["tools", "search", "--mode", "regx"], ["'--mode': 'regx' is not one of 'auto', 'keyword', 'regex'"]),
        (["run", "-", "--memory", "lots"], ["--memory", "integer"]),
        (["run", "-", "--config", "absent.json"], ["absent.json", "no such file"]),
        (["tools", "list"], ["no config", "--config"]),
        (["stubs", "*"], ["no config", "--config"]),
    ],
)
def test_wrong_usage_is_explained(codemode, arguments, parts):
    assert_explained(codemode(*arguments), *parts)


def test_a_config_that_is_missing_is_told_with_its_folder_and_with_the_variable_that_names_it(codemode, tmp_path):
    said = f"error: absent.json: there is no such file in {tmp_path}\n"
    assert codemode("tools", "list", "--config", "absent.json").stderr == said
    by_variable = f"{said}       CODEMODE_CONFIG names this file.\n"
    assert codemode("tools", "list", CODEMODE_CONFIG="absent.json").stderr == by_variable
    assert codemode("tools", "list", CODEMODE_CONFIG="/absent.json").stderr.startswith("error: /absent.json: there is ")


@pytest.mark.parametrize("command", [["run", "-"], ["check", "-"], ["serve"]])
def test_scripts_without_a_config_have_no_tools_and_that_is_said(codemode, config, command):
    script = "" if command == ["serve"] else "from tools import git"
    bare = codemode(*command, stdin=script)
    configured = codemode(*command, "-c", config, stdin=script)
    assert "no config: nothing says which MCP servers there are. Pass --config FILE" in bare.stderr
    assert "no config" not in configured.stderr
    assert "no config" not in codemode("run", "-", stdin="1").stderr


@pytest.mark.parametrize(
    "script", ["await git.git_log(repo_path='.')", "import git", "import tools\ntools.git.git_log"]
)
def test_a_script_that_lacks_a_server_is_told_that_there_is_no_config(codemode, script):
    assert "no config: nothing says which MCP servers there are" in codemode("run", "-", stdin=script).stderr
    assert "no config" not in codemode("run", "-", stdin="1 / 0").stderr


@pytest.mark.parametrize(("pattern", "is_named"), [("od.*", True), ("odd.*", False), ("o*.echo", False)])
def test_leave_for_a_server_that_there_is_not_is_named(codemode, config, pattern, is_named):
    finished = codemode("run", "-", "-c", config, "--allow", pattern, stdin="1")
    assert ("the config has no server 'od'; it has odd" in finished.stderr) is is_named


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("odd.ecoh", "--allow odd.ecoh: there is no such tool; did you mean odd.echo?"),
        ("odd.zzz*", "--allow odd.zzz*: there is no such tool"),
        ("odd.ec*", ""),
        (
            'odd.echo {"/txt": {"glob": "*"}}',
            "--allow odd.echo: its tools take no argument 'txt'; did you mean 'text'?",
        ),
        ('odd.echo {"/text": {"glob": "*"}, "/txt": {"present": false}}', ""),
        ("*.ecoh", ""),
    ],
)
def test_leave_for_a_tool_that_there_is_not_is_named(codemode, config, pattern, said):
    finished = codemode("run", "-", "-c", config, "--allow", pattern, "--allow", "odd.echo", stdin=CALL_ECHO)
    assert finished.returncode == 0
    assert [line for line in finished.stderr.splitlines() if line.startswith("--allow")] == ([said] if said else [])


def test_a_script_that_is_not_utf8_is_named_with_its_line(codemode, tmp_path):
    (tmp_path / "latin.py").write_bytes(b"x = 1\ny = '\xe9'\n")
    assert_explained(codemode("run", "latin.py"), "latin.py", "UTF-8", "line 2")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('{"mcpServers": {', ["mcp.json:1:", "not JSON"]),
        ("[]", ["JSON object"]),
        ('{"mcpServer": {}}', ["'mcpServer'", "'mcpServers'"]),
        ('{"mcpServers": {"git": {"comand": "git"}}}', ["'git'", "'comand'", "'command'"]),
        ('{"mcpServers": {"git": {"command": "git", "env": {"TOKEN": "${NOT_SET_HERE}"}}}}', ["NOT_SET_HERE", "set"]),
        ('{"mcpServers": {"git": {"command": "git", "url": "http://x"}}}', ["'git'", "both"]),
        ('{"mcpServers": {"git": {"args": 3, "command": "x"}}}', ["args"]),
    ],
)
def test_a_broken_config_is_explained(codemode, tmp_path, text, parts):
    (tmp_path / "mcp.json").write_text(text)
    assert_explained(codemode("run", "-", "--config", "mcp.json", stdin="print(1)"), *parts)


@pytest.mark.parametrize("pattern", ["", "echo"])
def test_a_pattern_that_can_match_nothing_is_explained(codemode, config, pattern):
    assert_explained(codemode("run", "-", "-c", config, "--allow", pattern, stdin="print(1)"), "pattern")


def servers(**broken):
    return {name: {"connect_timeout_seconds": 3} | entry for name, entry in broken.items()}


BROKEN = {
    "missing command": ({"command": "no-such-command-anywhere"}, "no-such-command-anywhere"),
    "exits at once": ({"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}, "broken"),
    "no such host": ({"url": "http://127.0.0.1:9/mcp"}, "broken"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_server_is_named_and_the_others_stay_usable(codemode, write_config, odd, case):
    entry, part = BROKEN[case]
    config = write_config(servers(broken=entry) | {"odd": odd})
    finished = codemode("run", "-", "-c", config, "--allow", "odd.echo", stdin=CALL_ECHO)
    assert (finished.returncode, finished.stdout) == (0, "still here\n")
    assert "broken" in finished.stderr
    assert part in finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_call_to_a_server_that_never_answers_fails_with_its_name_and_the_reason(codemode, write_config, odd):
    silent = {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"]}
    config = write_config(servers(silent=silent) | {"odd": odd})
    script = f"from tools import silent\n{CALL_ECHO}\nawait silent.anything()"
    finished = codemode("run", "-", "-c", config, "--allow", "*", stdin=script)
    assert (finished.returncode, finished.stdout) == (1, "still here\n")
    assert "ToolUnavailableError: silent" in finished.stderr


def test_a_server_that_dies_during_a_call_fails_that_call_and_no_other(codemode, write_config, odd):
    config = write_config({"odd": odd, "other": odd})
    script = """
import asyncio
from tools import odd, other, ToolError
died, answer = await asyncio.gather(odd.die(), other.echo(text='fine'), return_exceptions=True)
print(type(died).__name__, answer)
print(await other.echo(text='after'))
"""
    finished = codemode("run", "-", "-c", config, "--allow", "*", stdin=script)
    assert (finished.returncode, finished.stdout) == (0, "ToolOutcomeUnknown fine\nafter\n")


def test_doctor_names_what_is_wrong_and_what_to_do(codemode, write_config, odd):
    config = write_config(servers(broken={"command": "no-such-command-anywhere"}) | {"odd": odd})
    finished = codemode("doctor", "-c", config)
    assert finished.returncode == 2
    lines = finished.stdout.splitlines()
    [wrong] = [line for line in lines if line.startswith("wrong")]
    assert "broken" in wrong
    assert "no-such-command-anywhere" in wrong
    assert " -> " in wrong
    for subject in ("image", "cache", "config", "server odd"):
        assert any(line.startswith("ok") and subject in line for line in lines), subject


def test_doctor_connects_lazy_servers_to_see_whether_they_work(codemode, write_config, odd):
    lacking = {"command": "no-such-command-anywhere", "lazy": True}
    finished = codemode("doctor", "-c", write_config({"odd": {**odd, "lazy": True}, "lacking": lacking}))
    assert finished.returncode == 2
    assert "ok     server odd: 3 tools, protocol " in finished.stdout
    [wrong] = [line for line in finished.stdout.splitlines() if line.startswith("wrong")]
    assert wrong.startswith("wrong  server lacking: the command 'no-such-command-anywhere' was not found -> ")


def test_doctor_gives_programs_what_it_tells_people(codemode, write_config, odd):
    config = write_config(servers(broken={"command": "no-such-command-anywhere"}) | {"odd": odd})
    finished = codemode("doctor", "-c", config, "--json")
    assert (finished.returncode, finished.stderr) == (2, "")
    findings = json.loads(finished.stdout)
    lines = codemode("doctor", "-c", config).stdout.splitlines()
    assert len(findings) == len(lines)
    for finding, line in zip(findings, lines, strict=True):
        remedy = f" -> {finding['what_to_do']}" if finding["what_to_do"] else ""
        told = f"{finding['subject']}: {finding['found']}{remedy}"
        assert line == f"{'ok   ' if finding['is_right'] else 'wrong'}  {told}"


def test_doctor_names_what_of_a_config_is_found_out_with_the_servers(codemode, tmp_path, odd):
    document = {"mcpServers": {"odd": odd}, "disclosure": {"embedder": "no.such.module:Embedder"}}
    (tmp_path / "mcp.json").write_text(json.dumps(document))
    finished = codemode("doctor", "-c", "mcp.json")
    assert finished.returncode == 2
    assert "wrong  config: disclosure.embedder: no.such.module:Embedder cannot be used" in finished.stdout
    assert finished.stderr == ""


def test_commands_that_list_wait_until_a_server_has_said_why_it_does_not_come_up():
    assert max(ServerConfig(command=name).connect_timeout_seconds for name in ("x", "npx")) < LISTING_SECONDS


def test_doctor_without_anything_wrong_exits_0(codemode, config):
    finished = codemode("doctor", "-c", config)
    assert finished.returncode == 0, finished.stdout
    assert finished.stderr == ""


@pytest.fixture
def wrong_in_policy(codemode, tmp_path):
    """What doctor finds wrong in a policy beside the states of servers, and nowhere else."""

    def wrong(policy, servers):
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers, "policy": policy}))
        finished = codemode("doctor", "-c", "mcp.json")
        assert finished.returncode == 2
        found = [line for line in finished.stdout.splitlines() if line.startswith("wrong")]
        about = [line.removeprefix("wrong  policy: ") for line in found if not line.startswith("wrong  server")]
        return [line.removesuffix(" -> Correct it, or remove it.") for line in about]

    return wrong


def test_doctor_names_what_of_a_policy_is_about_no_server(wrong_in_policy, odd):
    policy = {
        "rules": [
            {"name": "typo", "tools": ["od.*", "odd.echo"], "effect": "deny"},
            {"tools": ["odd.*", "even.*", "*.echo"], "annotations": {"read_only": True}, "effect": "allow"},
            {"tools": ["o*.die", "*"], "effect": "deny"},
        ],
        "quotas": [{"tools": "ood.echo", "per_run": 1}],
        "flows": [
            {"from": "private", "to": "egres", "effect": "deny"},
            {"from": "copied", "to": "egress", "effect": "ask"},
        ],
    }
    servers = {"odd": {**odd, "labels": ["private", "egress"]}, "even": {**odd, "trust_annotations": True}}
    assert wrong_in_policy(policy, servers) == [
        "rule 1 'typo': no server is called 'od'",
        """rule 2 looks at annotations, and no server of 'odd.*' has "trust_annotations": true""",
        "quota 1: no server is called 'ood'",
        "flow 1: no server has the label 'egres'",
    ]


def test_doctor_names_the_rules_that_protect_nothing_as_others_go_before_them(wrong_in_policy, odd):
    policy = {
        "rules": [
            {"tools": "odd.echo", "arguments": {"/text": {"equals": "hi"}}, "effect": "ask"},
            {"name": "wide", "tools": "odd.*", "effect": "allow"},
            {"name": "late", "tools": ["odd.die", "odd.d*"], "effect": "deny"},
            {"tools": ["odd.echo", "other*.*"], "effect": "deny"},
        ],
    }
    assert wrong_in_policy(policy, {"odd": odd, "other": odd}) == [
        "rule 3 'late' never decides: before it, rule 2 'wide' takes every call; a narrower rule belongs first"
    ]


def test_doctor_names_the_tools_and_arguments_of_a_policy_that_no_server_has(wrong_in_policy, odd):
    policy = {
        "rules": [
            {"tools": ["odd.ecco", "odd.ecc?", "down.ecco"], "effect": "deny"},
            {
                "tools": "odd.echo",
                "arguments": {"/txt": {"equals": "x"}, "/text": {"glob": "*"}, "/force": {"present": False}},
                "effect": "deny",
            },
            {"tools": "odd.*", "arguments": {"/text": {"equals": "x"}}, "effect": "deny"},
        ],
        "quotas": [{"name": "few", "tools": ["odd.dye", "odd.die"], "per_run": 1}],
    }
    assert wrong_in_policy(policy, {"odd": odd, "down": {"command": "nosuch"}}) == [
        "rule 1: odd has no tool 'ecco'; did you mean 'echo'?",
        "rule 2: its tools take no argument 'txt'; did you mean 'text'?",
        "quota 1 'few': odd has no tool 'dye'; did you mean 'die'?",
    ]


def test_doctor_says_where_a_config_goes(codemode):
    finished = codemode("doctor")
    assert finished.returncode == 2
    assert "--config" in finished.stdout


def test_a_reader_that_goes_away_ends_the_output_quietly(command, environment, tmp_path):
    finished = subprocess.run(  # noqa: S602  # a pipe, as typed
        f"echo 'for i in range(50000): print(i)' | {command} run - | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert (finished.stdout, finished.stderr) == ("0\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="devices of POSIX")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "/dev/zero"), "/dev/zero: the script has more than 2097152 characters"),
        (("run", "-", "--config", "/dev/zero"), "/dev/zero: has more than the 16,777,216 bytes that are allowed"),
        (("replay", str(RECORDING), "--policy", "/dev/zero"), "/dev/zero: has more than the 16,777,216 bytes"),
    ],
)
def test_a_file_without_end_is_not_read_to_its_end(codemode, arguments, said):
    import resource  # noqa: PLC0415  # Windows has none

    bound = (6 * 1024 * MIB, 6 * 1024 * MIB)
    assert_explained(codemode(*arguments, first=partial(resource.setrlimit, resource.RLIMIT_AS, bound)), said)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "PIPE"),
        ("run", "-", "--config", "PIPE"),
        ("replay", "PIPE"),
        ("replay", str(RECORDING), "--policy", "PIPE"),
    ],
)
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(codemode, tmp_path, arguments):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    given = [str(pipe) if one == "PIPE" else one for one in arguments]
    assert_explained(codemode(*given), str(pipe), "nothing comes from this pipe")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_pipe_is_read_to_its_end(codemode, tmp_path):
    (tmp_path / "script.py").write_text("print(1)")
    config = '{"mcpServers": {}' + " " * 200_000 + "}"
    finished = codemode("run", "script.py", "--config", "/dev/stdin", stdin=config)
    assert (finished.returncode, finished.stdout) == (0, "1\n"), finished.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "is nested too deep"),
        ('{"rules": [], "rules": []}', "the key 'rules' is given twice in one object"),
        ("[]", 'must be a JSON object, as in {"rules": […]}'),
        ('{"rules"', "policy.json:1:9: is not JSON"),
    ],
)
def test_a_broken_policy_is_explained(codemode, tmp_path, text, said):
    (tmp_path / "policy.json").write_text(text)
    assert_explained(codemode("replay", str(RECORDING), "--policy", "policy.json"), said)


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("characters", "said"),
    [
        (2_097_153, "error: -: the script has 2097153 characters, and 2097152 are allowed"),
        (8_388_609, "error: -: the script has more than 2097152 characters"),
    ],
)
def test_a_script_that_is_too_long_is_no_fault_of_codemode(codemode, command, characters, said):
    assert_explained(codemode(command, "-", stdin="#" * characters), said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("replay", "last"), "nothing is recorded yet"),
        (("replay", "run_0", "nosuch.jsonl"), "there is no recording 'run_0'"),
        (("replay", "last", "--live"), "nothing is recorded yet"),
        (("resume", "last"), "nothing is recorded yet"),
        (("serve", "--http", "here:there"), "--http: 'here:there' is not HOST:PORT"),
        (("serve", "--http", "0.0.0.0:0"), "0.0.0.0 can be reached from other machines"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_image_is_compiled(codemode, tmp_path, config, arguments, said):
    cache = tmp_path / "cache"
    given = () if arguments[0] == "replay" else ("--config", config)
    finished = codemode(*arguments, *given, XDG_CACHE_HOME=str(cache), XDG_DATA_HOME=str(tmp_path / "data"))
    assert (finished.returncode, finished.stdout) == (2, "")
    assert said in finished.stderr
    assert "Compiling" not in finished.stderr
    assert not cache.exists()
