"""Logs of the command line: quiet by default, on stderr, without secrets or script output."""

from __future__ import annotations

import json
import subprocess
import sys

SECRET = "s3cret-of-the-server"  # noqa: S105  # what must not be seen
TELL_AND_LEAVE = f"import sys; print('cannot log in with {SECRET}', file=sys.stderr); raise SystemExit(3)"


def test_nothing_is_logged_unless_asked_for(codemode, config):
    finished = codemode("run", "-", "-c", config, stdin="from tools import odd\nprint(1)")
    assert finished.stderr == ""


def test_verbose_says_which_servers_are_ready(codemode, config):
    finished = codemode("run", "-", "-c", config, "--verbose", stdin="from tools import odd\nprint('printed')")
    assert "server is ready" in finished.stderr
    assert "printed" not in finished.stderr


def test_log_json_is_one_object_a_line(codemode, config):
    finished = codemode("run", "-", "-c", config, "--log-json", stdin="from tools import odd\nprint('printed')")
    lines = [json.loads(line) for line in finished.stderr.splitlines()]
    assert any(line["event"] == "server is ready" and line["server"] == "odd" for line in lines)
    assert all({"level", "timestamp"} <= set(line) for line in lines)


def test_a_secret_that_a_server_tells_is_redacted(codemode, write_config):
    server = {"command": sys.executable, "args": ["-c", TELL_AND_LEAVE], "env": {"API_TOKEN": "${TOKEN_HERE}"}}
    config = write_config({"telling": server})
    for options in ((), ("--verbose",), ("--log-json",)):
        finished = codemode("doctor", "-c", config, *options, TOKEN_HERE=SECRET)
        assert finished.returncode == 2
        assert "cannot log in with" in finished.stdout
        assert SECRET not in finished.stdout + finished.stderr


def test_a_store_that_is_none_shows_no_traceback(codemode, tmp_path):
    unusable = tmp_path / "store.sqlite3"
    unusable.write_text("a text where a database belongs")
    finished = codemode("run", "-", stdin="print(1)", CODEMODE_STORE=str(unusable))
    assert (finished.returncode, finished.stdout) == (2, "")
    assert str(unusable) in finished.stderr
    assert "Traceback" not in finished.stderr


FORGED = "no\n2026-11-28T12:00:00Z [error    ] the store is gone \x1b[31mred"
FAILING = f"""
import structlog
from broker.cli.logs import configure_logs
configure_logs(verbose=False, as_json=False)
try:
    raise ValueError({FORGED!r})
except ValueError:
    structlog.get_logger().exception("a fault")
"""


def test_no_line_of_an_exception_passes_for_one_of_the_log_or_acts_on_a_terminal():
    command = [sys.executable, "-c", FAILING]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # the text above
    first, *rest = finished.stderr.splitlines()
    assert "a fault" in first
    assert "  ValueError: no" in rest
    assert all(line.startswith("  ") for line in rest)
    assert "\x1b" not in finished.stderr
