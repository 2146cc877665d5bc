"""The standard streams when they are closed, full or nobody reads them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ECHO = "from tools import odd\nprint(await odd.echo(text='said'))"
FULL = "stdout cannot be written: No space left on device"


@pytest.fixture
def redirected(command, environment, tmp_path):
    """Runs `codemode` with a redirection of the shell's."""

    def run(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603  # our own command
            ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", command, *arguments],
            input="",
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
            cwd=tmp_path,
            check=False,
        )

    return run


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "echo.py"
    path.write_text(ECHO)
    return str(path)


@pytest.mark.parametrize(
    "case",
    [("<&-", "said\n"), (">&-", ""), ("2>&-", "said\n"), ("<&- >&- 2>&-", ""), ("2>/dev/full", "said\n")],
)
def test_a_script_runs_to_its_end_whatever_stream_is_closed(redirected, codemode, script, config, case):
    closed, stdout = case
    finished = redirected(closed, "run", script, "--config", config, "--allow", "odd.echo")
    assert (finished.returncode, finished.stdout) == (0, stdout), finished.stderr
    assert "said" in codemode("show", "last").stdout


@pytest.mark.parametrize("is_blocking", [True, False])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_a_slow_reader_has_not_taken_yet_is_waited_for(stream, is_blocking):
    reading_end, writing_end = os.pipe()
    os.set_blocking(writing_end, is_blocking)
    opened = "import sys; from broker.cli.streams import open_standard_streams; open_standard_streams()"
    code = f"{opened}; print('x' * 50_000_000, file=sys.{stream})"
    stdout, stderr = (writing_end, None) if stream == "stdout" else (None, writing_end)
    with subprocess.Popen([sys.executable, "-c", code], stdout=stdout, stderr=stderr) as process:  # noqa: S603  # our own code
        os.close(writing_end)
        with os.fdopen(reading_end, "rb") as reader:
            assert reader.read() == b"x" * 50_000_000 + b"\n"
    assert process.returncode == 0


def test_a_full_disk_behind_stdout_ends_no_run_and_is_named(redirected, codemode, script, config):
    finished = redirected(">/dev/full", "run", script, "--config", config, "--allow", "odd.echo")
    assert (finished.returncode, FULL in finished.stderr) == (70, True)
    assert "codemode show last" in finished.stderr
    assert "said" in codemode("show", "last").stdout


@pytest.mark.parametrize("listing", ["doctor", "tools list"])
def test_a_listing_that_cannot_be_written_is_named(redirected, config, listing):
    finished = redirected(">/dev/full", *listing.split(), "--config", config)
    assert finished.returncode == 70
    lost = "Only this output is lost: free some space, or write it to another place."
    assert finished.stderr == f"error: {FULL}\n       {lost}\n"


@pytest.mark.parametrize("told", ["--help", "--version", "tools list --help"])
def test_help_that_cannot_be_written_is_named(redirected, told):
    finished = redirected(">/dev/full", *told.split())
    assert (finished.returncode, finished.stderr) == (70, f"error: {FULL}\n")
    assert redirected(">&-", *told.split()).returncode == 0


@pytest.mark.parametrize("nothing", ["<&-", "</dev/null", "<&- >&-", ">/dev/null </dev/null"])
def test_a_server_without_a_client_ends(redirected, config, nothing):
    finished = redirected(nothing, "serve", "--config", config)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_what_the_encoding_of_the_terminal_lacks_ends_no_run(codemode):
    finished = codemode("run", "-", stdin="print('10 €')\n1", PYTHONIOENCODING="ascii")
    assert (finished.returncode, finished.stdout) == (0, "10 \\u20ac\n1\n"), finished.stderr
