"""What Tab completes, in the shells that there are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from broker.authorization.grants import Grant
from broker.authorization.kept_grants import KeptGrants
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.settings import RecordingSettings
from broker.store import Store
from codegen import ToolAnnotations, ToolSpec

ENDED, PARKED, ODD = "run_00000000000000aa", "run_00000000000000ab", "run_00000000000000bb"
HOSTILE = '$(touch pwned)`touch pwned`\'";touch pwned;".py'
NO_SHELL_DETECTION = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}


@pytest.fixture
def complete(codemode):
    """Press Tab behind a command line in bash; return what is offered."""

    def offered(line, **variables):
        words = str(len(line.split(" ")) - 1)
        finished = codemode(_CODEMODE_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=words, **variables)
        assert (finished.returncode, finished.stderr) == (0, "")
        return finished.stdout.split()

    return offered


@pytest.fixture
def in_zsh(codemode, command, environment, tmp_path):
    """Press Tab twice behind a command line in zsh; return what its function for completion is given each time."""

    def given(*words):
        script = codemode("--show-completion", "zsh", **NO_SHELL_DETECTION).stdout
        (tmp_path / "_codemode").write_text(script)
        program = (
            f"fpath=($PWD); words=({' '.join(words)}); CURRENT={len(words)}\n"
            "compdef() { :; }; _arguments() { print -r -- $1; print -rn -- $'\\0'; }\n"
            "autoload -Uz _codemode; _codemode; _codemode_completion\n"
        )
        path = f"{Path(command).parent}:{environment['PATH']}"
        finished = subprocess.run(  # noqa: S603  # our own script
            ["zsh", "-fc", program],  # noqa: S607
            env=environment | {"PATH": path},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.stderr == ""
        return finished.stdout.split("\0")[:-1]

    return given


@pytest.fixture
def store(data_home):
    with Store(Path(data_home) / "codemode-broker" / "broker.sqlite3") as store:
        yield store


@pytest.fixture
def recorded(store):
    """Three runs, the last one of a script with a name that a shell would act on."""
    with Recordings(store, RecordingSettings()) as recordings:
        recordings.settle(recordings.begin(ENDED, "full", "report.py"), "completed", 0)
        recordings.settle(recordings.begin(PARKED, "full", "mail.py"), "parked", 0)
        recordings.settle(recordings.begin(ODD, "full", HOSTILE), "raised", 0)


def test_bash_completes_commands(complete):
    assert complete("codemode to") == ["tools"]


needs_zsh = pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")


@needs_zsh
def test_zsh_completes_from_the_first_tab_on(in_zsh):
    assert [line.split(":")[2] for line in in_zsh("codemode", "to")] == ['(("tools"'] * 2


@pytest.mark.parametrize(
    "line",
    [
        "codemode show ",
        "codemode replay ",
        "codemode recordings export ",
        "codemode recordings rm ",
        "codemode policy explain ",
        "codemode audit --run ",
    ],
)
@pytest.mark.usefixtures("recorded")
def test_runs_are_completed_newest_first(complete, line):
    assert complete(line) == ["last", ODD, PARKED, ENDED]
    assert complete(f"{line}run_00000000000000a") == [PARKED, ENDED]
    assert complete(f"{line}tests/") == []


def test_of_many_runs_the_newest_are_offered_and_any_by_its_beginning(complete, store):
    ids = [f"run_{number:016x}" for number in range(0x100, 0x132)]
    with Recordings(store, RecordingSettings()) as recordings:
        for run_id in ids:
            recordings.settle(recordings.begin(run_id, "full", "many.py"), "completed", 0)
    assert complete("codemode show ") == ["last", *reversed(ids[20:])]
    assert complete(f"codemode show {ids[0]}") == ids[:1]


@pytest.mark.usefixtures("recorded")
def test_resume_completes_only_runs_that_can_go_on(complete):
    assert complete("codemode resume ") == [PARKED]


@needs_zsh
@pytest.mark.usefixtures("recorded")
def test_zsh_shows_what_a_run_was_and_runs_nothing_of_its_name(in_zsh, tmp_path):
    [first, second] = in_zsh("codemode", "show", "run_")
    assert first == second
    assert f'"{ENDED}":"completed report.py"' in first
    assert f'"{ODD}":"raised"' in first
    assert "touch" not in first
    assert not (tmp_path / "pwned").exists()


def test_permanent_grants_are_completed(complete, store):
    tool = ToolSpec("git", "git_push", None, "", {}, None, ToolAnnotations())
    kept = KeptGrants(store).keep(Grant("git.git_push", tool.digest, scope="always"), tool, principal="", by="you")
    assert complete("codemode grants revoke k_") == [kept]


@pytest.mark.parametrize(
    "line",
    ["codemode mcp login ", "codemode mcp logout ", "codemode tools search --server ", "codemode audit --server "],
)
def test_servers_are_completed_if_their_names_can_be_those_of_servers(complete, write_config, line):
    servers = {
        "git": {"env": {"TOKEN": "${UNSET}"}},
        "$(id)": {},
        "a b": {},
        "-x": {},
        "a.b": {},
        "ToolError": {},
        "mail-2": {},
    }
    assert complete(line, CODEMODE_CONFIG=write_config(servers)) == ["git", "mail-2"]


def test_servers_are_those_of_the_config_that_is_typed(complete, write_config):
    assert complete(f"codemode mcp login --config {write_config({'git': {}})} ") == ["git"]


@pytest.mark.parametrize("text", ["", "[]", '{"mcpServers": [1]}', '{"mcpServers": 1}', "{}", "[" * 100_000])
def test_a_config_that_cannot_be_read_completes_nothing(complete, tmp_path, text):
    (tmp_path / "mcp.json").write_text(text)
    assert complete("codemode mcp login ", CODEMODE_CONFIG=str(tmp_path / "mcp.json")) == []
    assert complete("codemode mcp login ", CODEMODE_CONFIG=str(tmp_path / "missing.json")) == []


def test_a_store_that_cannot_be_read_completes_nothing(complete, tmp_path):
    (tmp_path / "broker.sqlite3").write_text("no database" * 1000)
    damaged = {"CODEMODE_STORE": str(tmp_path / "broker.sqlite3")}
    assert complete("codemode show ", **damaged) == complete("codemode grants revoke ", **damaged) == []


def test_tab_makes_no_store(complete, tmp_path):
    assert complete("codemode show ", CODEMODE_STORE=str(tmp_path / "new" / "broker.sqlite3")) == []
    assert not (tmp_path / "new").exists()


def test_completion_that_cannot_be_installed_says_where_and_what_else_there_is(codemode, tmp_path):
    (tmp_path / "home").write_text("")
    finished = codemode("--install-completion", "bash", HOME=str(tmp_path / "home"), **NO_SHELL_DETECTION)
    assert finished.returncode == 2
    assert "Traceback" not in finished.stderr
    assert f"Completion cannot be installed: {tmp_path / 'home'}" in finished.stderr
    assert "'codemode --show-completion' prints it." in finished.stderr
