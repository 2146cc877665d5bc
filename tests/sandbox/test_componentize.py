"""The guest component as a build makes it: the same bytes from the same sources, or a note that says otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sandbox import componentize
from sandbox.image_loading import COMPONENT
from tests.processes import lives

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))


def note(component: Path) -> Any:
    return json.loads(component.with_suffix(".json").read_text("utf-8"))


def test_another_build_elsewhere_gives_the_same_bytes(tmp_path, monkeypatch, can_repeat):
    """The installed image was built from another folder, in another environment."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made = tmp_path / "guest.wasm"
    componentize.build_component(made)
    assert note(made)["inputs"] == note(COMPONENT)["inputs"]
    assert note(made)["reproducible"] is can_repeat
    if can_repeat:
        assert note(made)["sha256"] == note(COMPONENT)["sha256"]
    before = made.stat().st_mtime_ns
    componentize.build_component(made)
    assert made.stat().st_mtime_ns == before  # what is there is not built again


def test_every_input_counts(tmp_path, monkeypatch):
    plain = componentize.inputs_digest()
    packages = tmp_path / "packages"
    packages.mkdir()
    assert componentize.inputs_digest(packages) == plain
    (packages / "module.py").write_text("1")
    one = componentize.inputs_digest(packages)
    (packages / "module.py").write_text("2")
    two = componentize.inputs_digest(packages)
    (packages / "module.py").rename(packages / "other.py")
    monkeypatch.setattr(componentize, "REQUIREMENTS", ("tzdata",))
    assert len({plain, one, two, componentize.inputs_digest(packages), componentize.inputs_digest()}) == 5


def test_what_builds_the_installed_image_is_what_builds_images_later():
    needed = {*PROJECT["project"]["optional-dependencies"]["images"], *PROJECT["project"]["dependencies"]}
    building = {item for item in PROJECT["build-system"]["requires"] if not item.startswith("hatchling")}
    assert building <= needed


@pytest.mark.skipif(sys.platform == "win32", reason="programs of a shell")
def test_no_program_of_a_thread_outlives_the_process_nor_begins_at_its_end(tmp_path):
    log = tmp_path / "pids"
    program = (
        "import atexit, threading\n"
        "from pathlib import Path\n"
        "from sandbox.componentize import programs_ended_at_exit, run_program\n"
        f"log = Path({str(log)!r})\n"
        "def work():\n"
        "    with programs_ended_at_exit():\n"
        "        while True:\n"
        f"            run_program(['sh', '-c', 'sleep 600 & echo $$ $! >> {log}; wait'], log.parent)\n"
        "thread = threading.Thread(target=work, daemon=True)\n"
        "atexit.register(thread.join, 0.5)\n"
        "thread.start()\n"
        "while not log.exists() or not log.read_text().endswith('\\n'): pass\n"
    )
    ended = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    [begun] = log.read_text().splitlines()
    assert not any(lives(int(pid)) for pid in begun.split())
