"""`codemode run`: outcomes, exit codes, streams, the envelope."""

from __future__ import annotations

import json
import sys

import pytest

ENVELOPE = {
    "outcome",
    "value",
    "stdout",
    "stderr",
    "error",
    "stopped",
    "calls",
    "usage",
    "run_id",
    "duration_ms",
}


def envelope(finished):
    """stdout holds one JSON object and nothing else."""
    return json.loads(finished.stdout)


def test_a_completed_script_exits_0_and_prints_its_value_as_json(codemode):
    finished = codemode("run", "-", stdin="print('hello')\n{'sum': 6 * 7}")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout == 'hello\n{\n  "sum": 42\n}\n'


def test_the_two_streams_of_a_script_stay_apart(codemode):
    finished = codemode("run", "-", stdin="import sys; print('out'); print('err', file=sys.stderr)")
    assert (finished.stdout, finished.stderr) == ("out\n", "err\n")


def test_an_exception_exits_1_with_the_scripts_own_lines_only(codemode, tmp_path):
    (tmp_path / "broken.py").write_text("def divide():\n    return 1 / 0\n\ndivide()\n")
    finished = codemode("run", "broken.py")
    assert finished.returncode == 1
    assert 'File "broken.py", line 2, in divide' in finished.stderr
    assert finished.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    assert "sandbox" not in finished.stderr
    assert str(tmp_path) not in finished.stderr


def test_a_syntax_error_shows_line_and_caret(codemode):
    finished = codemode("run", "-", stdin="x = (1,\ny = 2 +* 3\n")
    assert finished.returncode == 1
    lines = finished.stderr.splitlines()
    assert '  File "<stdin>", line 1' in lines
    assert any(line.strip().startswith("^") for line in lines)
    assert lines[-1].startswith("SyntaxError: ")


@pytest.mark.parametrize("name", ["slow.echo", "echo"])
def test_a_call_in_json_is_told_from_a_value_before_its_server_is_ready(codemode, write_config, name):
    program = (
        "from mcp.server import MCPServer  # which takes a second\n"
        "server = MCPServer('slow')\n"
        "@server.tool()\n"
        "def echo(text: str) -> str: return text\n"
        "server.run()\n"
    )
    config = write_config({"slow": {"command": sys.executable, "args": ["-c", program]}})
    finished = codemode("run", "-", "--config", config, stdin=f'{{"name": "{name}", "arguments": {{"text": "a"}}}}')
    assert (finished.returncode, finished.stdout) == (1, "")
    assert "`from tools import slow` and `await slow.echo(text='a')`" in finished.stderr


def test_a_script_that_never_ends_exits_3_and_names_the_option(codemode):
    finished = codemode("run", "-", "--timeout", "0.5", stdin="while True: pass")
    assert finished.returncode == 3
    assert "wall_seconds" in finished.stderr
    assert "--timeout" in finished.stderr


def test_a_script_that_waits_forever_exits_3(codemode):
    finished = codemode("run", "-", "--timeout", "0.5", stdin="import asyncio; await asyncio.sleep(1e6)")
    assert finished.returncode == 3


def test_a_script_that_eats_memory_ends_inside_its_limit(codemode):
    finished = codemode("run", "-", "--memory", "64", "--json", stdin="x = 'x' * 100\nwhile True: x += x")
    found = envelope(finished)
    assert (finished.returncode, found["outcome"]) == (1, "raised")
    assert found["error"]["type"] in {"MemoryError", "SandboxTrap"}


def test_100_mb_of_output_exit_3_with_what_came_before(codemode):
    finished = codemode("run", "-", stdin="for _ in range(100): print('x' * 1_000_000)")
    assert finished.returncode == 3
    assert "output_bytes" in finished.stderr
    assert 1_000_000 <= len(finished.stdout) < 2_000_000


def test_a_refused_call_exits_4_and_says_how_to_allow_it(codemode, config):
    finished = codemode("run", "-", "-c", config, stdin="from tools import odd\nawait odd.echo(text='hi')")
    assert finished.returncode == 4
    assert "ToolRefusedError" in finished.stderr
    assert "--allow" in finished.stderr
    assert "odd.echo" in finished.stderr


def test_an_allowed_call_is_made_and_shown_in_the_table(codemode, config):
    finished = codemode(
        "run", "-", "-c", config, "--allow", "odd.e*", stdin="from tools import odd\nprint(await odd.echo(text='hi'))"
    )
    assert (finished.returncode, finished.stdout) == (0, "hi\n")
    assert "1 tool call" in finished.stderr
    assert "odd.echo" in finished.stderr


def test_a_pattern_allows_what_it_matches_and_nothing_else(codemode, config):
    script = (
        "from tools import odd\ntry:\n    await odd.fail(text='x')\nexcept PermissionError as error:\n    print(error)"
    )
    finished = codemode("run", "-", "-c", config, "--allow", "odd.echo", stdin=script)
    assert finished.returncode == 0
    assert "odd.fail" in finished.stdout


def test_many_calls_are_one_row_for_each_tool(codemode, config):
    script = (
        "import asyncio\nfrom tools import odd\nawait asyncio.gather(*(odd.echo(text='x') for _ in range(30)))\nNone"
    )
    finished = codemode("run", "-", "-c", config, "--allow", "*", stdin=script)
    assert finished.returncode == 0
    assert "30 tool calls" in finished.stderr
    assert finished.stderr.count("odd.echo") == 1


def test_the_envelope_has_these_keys_and_is_all_of_stdout(codemode, config):
    script = "from tools import odd\nprint('printed')\nawait odd.echo(text='hi')"
    found = envelope(codemode("run", "-", "-c", config, "--allow", "odd.echo", "--json", stdin=script))
    assert set(found) == ENVELOPE
    assert found["outcome"] == "completed"
    assert (found["value"], found["stdout"], found["stderr"]) == ("hi", "printed\n", "")
    assert (found["error"], found["stopped"]) == (None, None)
    [call] = found["calls"]
    assert set(call) == {"server", "tool", "decision", "status", "duration_ms"}
    assert (call["server"], call["tool"]) == ("odd", "echo")


@pytest.mark.parametrize(
    ("script", "code", "outcome", "filled"),
    [("1 / 0", 1, "raised", "error"), ("while True: pass", 3, "stopped", "stopped")],
)
def test_the_envelope_tells_what_ended_the_script(codemode, script, code, outcome, filled):
    finished = codemode("run", "-", "--timeout", "1", "--json", stdin=script)
    found = envelope(finished)
    assert (finished.returncode, found["outcome"]) == (code, outcome)
    assert [key for key in ("error", "stopped") if found[key] is not None] == [filled]


def test_what_a_script_prints_cannot_drive_the_terminal(codemode):
    finished = codemode("run", "-", stdin=r"print('\x1b[2J\x1b]0;owned\x07')")
    assert finished.stdout == "\\x1b[2J\\x1b]0;owned\\x07\n"


def test_what_a_tool_says_cannot_drive_the_terminal(codemode, config):
    script = "from tools import odd\nawait odd.fail(text='\\x1b[2Jgone')"
    finished = codemode("run", "-", "-c", config, "--allow", "odd.fail", stdin=script)
    assert finished.returncode == 1
    assert "\x1b" not in finished.stdout + finished.stderr
    assert "gone" in finished.stderr


def test_a_file_is_run_and_a_byte_order_mark_is_nothing(codemode, tmp_path):
    (tmp_path / "bom.py").write_bytes(b"\xef\xbb\xbfprint('read')\n")
    assert codemode("run", "bom.py").stdout == "read\n"


def test_the_image_is_compiled_once_and_a_plain_line_says_so(codemode, tmp_path):
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    first = codemode("run", "-", stdin="print(1)", **cache)
    second = codemode("run", "-", stdin="print(1)", **cache)
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stderr.startswith("Compiling the sandbox image")
    assert first.stderr.count("\n") == 1
    assert second.stderr == ""


def test_what_a_script_displays_is_named_where_it_cannot_be_shown(codemode):
    script = "display(b'a,b', mime_type='text/csv')\ndisplay(b'GIF89a', mime_type='image/gif')"
    finished = codemode("run", "-", stdin=script)
    assert (finished.returncode, finished.stdout) == (0, "")
    assert "displayed, for clients and not on a terminal: text/csv, image/gif\n" in finished.stderr
    assert "displayed" not in codemode("run", "-", stdin="1").stderr


@pytest.mark.parametrize("mode", ["metadata", "off"])
def test_a_run_that_could_not_be_parked_does_not_start(codemode, tmp_path, mode):
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {}, "recordings": {"mode": mode}}))
    finished = codemode("run", "-", "--park", "-c", "mcp.json", stdin="print(1)")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == (
        "error: --park needs runs that are recorded in full\n       Set recordings.mode in the config to full.\n"
    )
