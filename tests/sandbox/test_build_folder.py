"""The folder of a build whose process was killed: swept by the next build, and no other folder is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

from sandbox.build_folder import LOCK_NAME, PREFIX, build_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there a folder in use cannot be told from others")

BUILD = """
import sys
from sandbox.build_folder import build_folder
with build_folder() as folder:
    (folder / "packages").mkdir()
    (folder / "packages" / "a.py").write_text("1")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def builds(temporary):
    """Begin a build in a process of its own; return the process and its folder."""
    begun = []

    def build():
        process = subprocess.Popen(  # noqa: S603  # this interpreter
            [sys.executable, "-c", BUILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(temporary)},
        )
        begun.append(process)
        assert process.stdout is not None
        return process, temporary / process.stdout.readline().strip().rpartition("/")[2]

    yield build
    for process in begun:
        process.kill()
        process.communicate()


def test_the_folder_of_a_killed_build_is_swept_and_that_of_a_running_one_is_not(builds, temporary):
    (killed, left), (running, held) = builds(), builds()
    killed.kill()
    killed.wait()
    assert (left / "packages" / "a.py").exists()
    with build_folder() as own:
        assert sorted(temporary.iterdir()) == sorted([held, own])
        assert (held / "packages" / "a.py").exists()
    running.communicate("")
    assert (running.returncode, list(temporary.iterdir())) == (0, [])


def test_a_build_that_is_given_up_while_it_writes_leaves_nothing_that_the_next_does_not_sweep(temporary):
    program = (
        "import contextlib, threading\n"
        "from sandbox.build_folder import build_folder\n"
        "writes = threading.Event()\n"
        "def build():\n"
        "    with contextlib.suppress(OSError), build_folder() as folder:\n"
        "        (folder / 'packages').mkdir()\n"
        "        for number in range(2_000):\n"
        "            (folder / 'packages' / str(number)).mkdir()\n"
        "            writes.set()\n"
        "threading.Thread(target=build, daemon=True).start()\n"
        "writes.wait()\n"
    )
    ended = subprocess.run(  # noqa: S603  # this interpreter
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    with build_folder():
        pass
    assert list(temporary.iterdir()) == []


def test_what_is_no_folder_of_a_build_of_ours_is_left_alone(temporary):
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK_NAME).touch()
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    (temporary / f"{PREFIX}begun").mkdir()  # a build that has not come to its lock yet
    before = sorted(temporary.iterdir())
    with build_folder():
        pass
    assert sorted(temporary.iterdir()) == before
    assert (elsewhere / LOCK_NAME).exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_left_alone(temporary):
    theirs = temporary / f"{PREFIX}theirs"
    theirs.mkdir()
    (theirs / LOCK_NAME).touch()
    os.chown(theirs, 65_534, 65_534)
    with build_folder():
        assert theirs.exists()
    os.chown(theirs, 0, 0)
    with build_folder():
        assert not theirs.exists()
