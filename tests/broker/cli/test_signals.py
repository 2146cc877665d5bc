"""What is left when a command is ended from outside, as by `timeout`, a job that is cancelled, a closed terminal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from broker import CallRecord
from broker.cli.run_report import reported_if_ended
from tests.processes import descendants, lives

HOSTILE = Path(__file__).parents[1] / "servers" / "hostile_upstream.py"
SCRIPT = "from tools import stubborn\nprint(await stubborn.echo(text='a'))\nimport asyncio\nawait asyncio.sleep(60)\n"


@pytest.fixture
def waiting(command, environment, tmp_path):
    """Runs a script that has called a server that is deaf to signals and closed pipes, and now waits."""
    server = {"command": sys.executable, "args": ["-I", str(HOSTILE), "call_ignore_sigterm"], "mode": "legacy"}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"stubborn": server}}))
    (tmp_path / "script.py").write_text(SCRIPT)
    run = [command, "run", "script.py", "--config", "mcp.json", "--allow", "stubborn.echo"]

    @contextmanager
    def start(*before: str):
        with subprocess.Popen(  # noqa: S603  # our own command
            [*before, *run],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "a\n"
                yield process
            finally:
                process.kill()

    return start


@pytest.mark.parametrize(("end", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_run_that_is_ended_takes_its_servers_along_and_can_go_on(waiting, codemode, end, code):
    with waiting() as process:
        started = descendants(process.pid)
        assert len(started) >= 2
        assert codemode("show", "last").stdout.splitlines()[1] == "is running"
        [run] = json.loads(codemode("recordings", "list", "--json").stdout)
        assert codemode("run", "-", stdin="1").returncode == 0
        process.send_signal(end)
        assert process.wait(timeout=60) == code
        assert [pid for pid in started if lives(pid)] == []
        said = process.stderr.read()
    assert "1 tool call" in said
    assert "stubborn.echo" in said
    assert f"`codemode resume {run['run_id']} --config mcp.json` continues the run" in said
    assert said.endswith("interrupted\n" if end is signal.SIGINT else f"ended by {end.name}\n")
    assert "interrupted" in codemode("runs").stdout
    assert codemode("show", run["run_id"]).stdout.splitlines()[1] == "was interrupted"


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ([signal.SIGTERM], 143),
        ([signal.SIGINT, signal.SIGTERM], 130),
        ([signal.SIGHUP, signal.SIGTERM], 129),
    ],
)
def test_a_server_ends_with_a_run_that_is_ended_while_it_starts(  # noqa: PLR0917  # fixtures
    command, environment, write_config, tmp_path, signals, code
):
    deaf = {"command": "sh", "args": ["-c", "trap '' TERM HUP INT; while :; do sleep 60; done"]}
    config = write_config({"deaf": deaf})
    (tmp_path / "script.py").write_text("from tools import deaf\nawait deaf.listen()\n")
    with subprocess.Popen(  # noqa: S603  # our own command
        [command, "run", "script.py", "--config", config],
        env=environment,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while len(started := descendants(process.pid)) < 2:
            assert process.poll() is None
        for number in signals:
            process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert [pid for pid in started if lives(pid)] == []
    assert "Traceback" not in said


@pytest.mark.anyio
@pytest.mark.parametrize(("calls", "runs", "is_told"), [(1, ["run_1"], True), (0, ["run_1"], False), (1, [], False)])
async def test_only_of_a_recorded_run_with_calls_is_told_how_to_go_on(capsys, calls, runs, is_told):
    with anyio.CancelScope() as scope, reported_if_ended(None, lambda: runs) as on_call:
        for number in range(calls):
            on_call(CallRecord(server="desk", tool="add"), number, number)
        scope.cancel()
        await anyio.lowlevel.checkpoint()
    said = capsys.readouterr().err
    assert ("`codemode resume run_1` continues the run" in said) == is_told
    assert ("desk.add" in said) == bool(calls)


def end_of(program):
    """The exit status of a program in Python, and what it says on stderr."""
    ended = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    return ended.returncode, ended.stderr


def test_ctrl_c_ends_what_keeps_the_event_loop_busy_if_it_is_pressed_again():
    program = (
        "import os, signal, sys, typer\n"
        "from broker.cli.start import start\n"
        "async def busy(_request):\n"
        "    while True: os.kill(os.getpid(), signal.SIGINT)\n"
        "try: start(busy, None)\n"
        "except typer.Exit as ended: sys.exit(ended.exit_code)\n"
    )
    assert end_of(program) == (130, "\nerror: interrupted\n")


def test_a_run_under_nohup_does_not_end_with_its_terminal(waiting):
    with waiting("nohup") as process:
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 143
        assert process.stderr.read().endswith("ended by SIGTERM\n")


def test_ctrl_c_ends_the_build_of_an_image_with_what_it_has_started(command, environment, tmp_path):
    with zipfile.ZipFile(tmp_path / "greeting-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("greeting.py", "")
        wheel.writestr("greeting-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        wheel.writestr("greeting-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("greeting-1.0.dist-info/RECORD", "")
    (tmp_path / "scratch").mkdir()
    here = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null"}
    with subprocess.Popen(  # noqa: S603  # our own command
        [command, "image", "build", "--name", "polite", "--with", "greeting"],
        env=environment | here | {"TMPDIR": str(tmp_path / "scratch")},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line == "Building the image\n":
                break
        while not (started := descendants(process.pid)):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.stderr.read().endswith("error: interrupted\n")
    assert process.returncode == 130
    assert [pid for pid in started if lives(pid)] == []
    assert list((tmp_path / "scratch").iterdir()) == []
    assert list(Path(environment["XDG_DATA_HOME"]).rglob("guest.wasm")) == []


def test_ctrl_c_while_codemode_is_loaded_ends_it_without_a_traceback():
    """In the place of the commands is one that is interrupted while it is loaded."""
    program = (
        "import os, signal, sys, types\n"
        "loading = types.ModuleType('broker.cli.app')\n"
        "loading.app = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.modules['broker.cli.app'] = loading\n"
        "from broker.cli import main\n"
        "main()\n"
    )
    assert end_of(program) == (-signal.SIGINT, "")
