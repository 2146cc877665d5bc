"""The store when it is locked, full, damaged, read-only or somebody else's: what commands say, do and leave behind."""

from __future__ import annotations

import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import platformdirs
import pytest

from broker.cli import doctor_store
from broker.cli.audit import AuditRequest, show_audit
from broker.cli.grants import list_grants
from broker.cli.runs import RunsRequest, list_runs
from broker.cli.terminal import Problem
from broker.store import Store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="modes and limits of files as Linux has them")

CALLS = """
from tools import odd
for n in range(40):
    print(n, len(await odd.echo(text=str(n) * 50_000)))
"""


@pytest.fixture
def store(data_home):
    """Where the commands keep theirs."""
    return Path(data_home) / "codemode-broker" / "broker.sqlite3"


@pytest.fixture
def written(store):
    """A store that has been used."""
    with Store(store) as opened:
        for tables in doctor_store._TABLES:
            opened.prepare(tables)
    return store


@pytest.fixture
def at_home(tmp_path):
    """What makes the folder of the test the user's home; the compiled image stays where it is."""
    return {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(platformdirs.user_cache_path())}


def files_of(size):
    """Lets no file become larger than so many bytes, as on a full disk."""
    return partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))


def lines_about_the_store(finished):
    return [line for line in finished.stdout.splitlines() if re.match(r"(ok   |wrong)  store:", line)]


def test_a_run_on_a_store_that_is_locked_is_not_begun_and_exits_2(codemode, written):
    with Store(written) as other, other.transaction():
        finished = codemode("run", "-", stdin="print('ran')")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "another process has kept it locked for 5 s; end that process" in finished.stderr
    assert "fault of codemode" not in finished.stderr


def test_a_run_on_a_store_that_is_full_is_not_begun_and_exits_2(codemode, written, tmp_path):
    (tmp_path / "script.py").write_text(f"print('ran')\n#{'x' * 300_000}")
    finished = codemode("run", "script.py", first=files_of(200_000))
    assert (finished.returncode, finished.stdout) == (2, "")
    assert f"error: {written}: " in finished.stderr
    assert "Nothing was run." in finished.stderr
    assert codemode("run", "script.py").stdout == "ran\n"


def test_a_run_that_cannot_be_written_further_says_how_to_go_on_and_goes_on(
    codemode, command, environment, config, tmp_path
):
    (tmp_path / "script.py").write_text(CALLS)
    named = Path(config).rename(tmp_path / "it's a config.json").name
    finished = codemode("run", "script.py", "-c", named, "--allow", "odd.echo", first=files_of(1_500_000))
    assert finished.returncode == 70, finished.stderr
    assert re.search(r"error: run_[0-9a-f]{16} was interrupted\. .*calls had been answered\. ", finished.stderr)
    [literal] = re.findall(r"`(codemode resume .*)` continues it", finished.stderr)
    [run] = re.findall("run_[0-9a-f]{16}", literal)
    resumed = subprocess.run(  # noqa: S603  # what we told people to type
        ["/bin/sh", "-c", f"{literal} --unknown repeat"],
        env=environment | {"PATH": f"{Path(command).parent}:{environment['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert resumed.returncode in {0, 1}, resumed.stderr
    assert f"{run}  interrupted" not in codemode("runs").stdout


EMPTY = {
    "runs": (0, "no run"),
    "recordings list": (0, "nothing is recorded yet"),
    "recordings export last": (2, "nothing is recorded yet"),
    "show last": (2, "nothing is recorded yet"),
    "replay last": (2, "nothing is recorded yet"),
    "resume last": (2, "nothing is recorded yet"),
    "audit": (2, "nothing was recorded yet"),
    "policy explain last": (2, "nothing was recorded yet"),
    "grants list": (0, "nothing is allowed permanently"),
    "tools infer *": (2, "no result of '*' is recorded"),
    "tools infer * --store": (2, "no result of '*' is recorded"),
    "tools infer * --forget": (0, "forgot 0"),
    "tools infer * --store --forget": (2, "--store and --forget say opposite things"),
    "recordings rm last": (2, "nothing is recorded yet"),
    "audit prune --keep 5": (2, "nothing was recorded yet"),
    "audit --verify": (2, "nothing was recorded yet"),
    "grants revoke k_0123abcd": (2, "nothing was recorded yet"),
    "tools list -c mcp.json": (0, ""),
    "tools search echo -c mcp.json": (0, ""),
}


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize("command", EMPTY)
def test_a_command_that_reads_or_removes_makes_no_store(codemode, tmp_path, command):
    code, said = EMPTY[command]
    data = tmp_path / "new" / "data"
    finished = codemode(*command.split(), XDG_DATA_HOME=str(data))
    assert finished.returncode == code, finished.stderr
    assert said in finished.stderr
    assert not data.parent.exists()


@pytest.fixture
def forbidden(monkeypatch):
    """A store in a folder that we may not look into, which root may."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("CODEMODE_STORE", f"{folder}/theirs/broker.sqlite3")
        (Path(folder) / "theirs").mkdir(mode=0)
        user = os.geteuid()
        if user == 0:
            Path(folder).chmod(0o755)
            os.seteuid(65_534)
        yield
        os.seteuid(user)


@pytest.mark.usefixtures("forbidden")
@pytest.mark.anyio
@pytest.mark.parametrize("command", [show_audit, list_grants, list_runs])
async def test_a_folder_of_somebody_else_is_told_as_that(command):
    request = (
        AuditRequest(None, None, None, verify=False, as_json=False)
        if command is show_audit
        else RunsRequest(as_json=False)
    )
    with pytest.raises(Problem, match="cannot be opened: Permission denied; check that its folder exists"):
        await command(request)


def test_doctor_says_where_a_store_will_be_and_makes_none(codemode, store, tmp_path, at_home):
    finished = codemode("doctor", **at_home)
    shown = f"~/{store.relative_to(tmp_path)}"
    assert lines_about_the_store(finished) == [f"ok     store: {shown} is made by the first run"]
    assert not store.exists()


def test_doctor_says_how_the_store_is(codemode, store, tmp_path, at_home):
    codemode("run", "-", stdin="1")
    [line] = lines_about_the_store(codemode("doctor", **at_home))
    assert re.fullmatch(
        rf"ok     store: ~/{store.relative_to(tmp_path)}, \d+\.\d MiB, 1 recorded run, whole; versions: audit \d, .*",
        line,
    ), line


def test_doctor_finds_damage_and_its_commands_mend_it(codemode, store, tmp_path, at_home):
    codemode("run", "-", stdin="1")
    with Store(store) as opened:
        [[page]] = opened.execute("SELECT rootpage FROM sqlite_master WHERE name = 'recording_began'")
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(store.read_bytes())
    content[(page - 1) * 4096 + 8 : page * 4096] = b"\xff" * 4088
    store.write_bytes(content)
    finished = codemode("doctor", **at_home)
    [line] = lines_about_the_store(finished)
    assert finished.returncode == 2
    assert line.startswith("wrong  store: ~/"), line
    assert "amaged" in line
    shown = f"~/{store.relative_to(tmp_path)}"
    assert f"mv {shown} {shown}.damaged" in line
    store.rename(store.with_name("broker.sqlite3.damaged"))
    assert codemode("run", "-", stdin="print('runs')").stdout == "runs\n"


def test_doctor_finds_a_file_that_is_none_of_ours(codemode, store):
    store.write_text("something else entirely " * 100)
    [line] = lines_about_the_store(codemode("doctor"))
    assert "it is not a database of codemode; move it away, and codemode makes a new one. -> " in line


def test_doctor_finds_that_others_may_write_beside_the_store(codemode, written):
    written.parent.chmod(0o775)
    _, wrong = lines_about_the_store(codemode("doctor"))
    assert wrong.startswith("wrong  store: other users may write to ")
    assert wrong.endswith(f" -> chmod 700 {written.parent}")
    written.parent.chmod(0o755)
    assert len(lines_about_the_store(codemode("doctor"))) == 1


def test_doctor_finds_a_disk_that_is_nearly_full(monkeypatch, written):
    monkeypatch.setenv("CODEMODE_STORE", str(written))
    assert [finding.is_right for finding in doctor_store.store_findings()] == [True]
    monkeypatch.setattr(doctor_store, "LEAST_MIB", 2**40)
    _, wrong = doctor_store.store_findings()
    assert "MiB are free on the disk of " in wrong.found
    assert wrong.what_to_do == "Free some space, or set CODEMODE_STORE to a file elsewhere."


def test_doctor_finds_a_store_of_a_newer_version_and_examines_the_servers(codemode, written, config):
    with sqlite3.connect(written) as other:
        other.execute("UPDATE component SET version = 99 WHERE name = 'recordings'")
    other.close()
    doctor = codemode("doctor", "-c", config)
    [line] = lines_about_the_store(doctor)
    assert "was made by a newer codemode (version 99, known is " in line
    assert doctor.stdout.splitlines()[-1].startswith("ok     server odd: ")
    listed = codemode("tools", "list", "-c", config)
    assert (listed.returncode, "odd.echo" in listed.stdout) == (0, True)
    assert "Until then tools are ranked without what is known of their use." in listed.stderr
    assert os.access(written, os.W_OK)
