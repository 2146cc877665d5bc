"""The wheel as a user installs it: into a clean environment, without componentize-py, without a checkout."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("broker", "codegen", "sandbox")


@pytest.fixture(scope="module")
def uv():
    found = os.environ.get("UV") or shutil.which("uv")
    if found is None:
        pytest.skip("uv, which builds the wheel, is not on PATH")
    return found


@pytest.fixture(scope="module")
def wheel(uv, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run([uv, "build", "--wheel", "--out-dir", folder, ROOT])
    (built,) = folder.glob("*.whl")
    return built


def run(command, **options):
    finished = subprocess.run(  # noqa: S603  # commands of this file only
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=600, **options
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def test_the_wheel_holds_the_guest_and_runs_on_every_platform(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert wheel.name.endswith("-py3-none-any.whl")
    assert {"sandbox/guest.wasm", "sandbox/guest.json"} <= names
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == set(PACKAGES)


def test_a_script_runs_in_a_clean_environment_with_the_wheel(uv, wheel, tmp_path):
    environment = tmp_path / "environment"
    run([uv, "venv", "--python", sys.executable, environment])
    binaries = environment / ("Scripts" if os.name == "nt" else "bin")
    run([uv, "pip", "install", "--python", binaries / "python", wheel])
    script = tmp_path / "script.py"
    script.write_text("import zoneinfo\nprint('hello')\nreturn {'answer': 6 * 7}\n", "utf-8")
    home = {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    variables = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}

    printed = run([binaries / "codemode", "run", script, "--json"], cwd=tmp_path, env=variables | home)

    envelope = json.loads(printed)
    assert (envelope["outcome"], envelope["value"], envelope["stdout"]) == ("completed", {"answer": 42}, "hello\n")
    installed = run([uv, "pip", "list", "--python", binaries / "python", "--format", "json"])
    assert "componentize-py" not in {package["name"] for package in json.loads(installed)}
