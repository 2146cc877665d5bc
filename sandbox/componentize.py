"""Builds the guest component from `sandbox/guest` with componentize-py.

Runs while a wheel or an editable install is built, so it imports nothing beyond the standard library before it
is needed, and nothing of this package. The component is made from a staging folder that holds exactly what goes
in: no path and no package of the building machine ends up in the snapshot.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

GUEST = Path(__file__).with_name("guest")
REQUIREMENTS = ("componentize-py", "tzdata")


class ComponentizeError(Exception):
    """componentize-py could not make the component; the text holds what it said."""


def build_component(component: Path) -> None:
    """Builds `component` unless the one there was made from the same sources by the same tools.

    Args:
        component: Where the `.wasm` file goes. A `.json` file beside it notes what it is and was made from.

    Raises:
        ComponentizeError: The build failed.
    """
    inputs = inputs_digest()
    noted = component.with_suffix(".json")
    if component.exists() and noted.exists() and json.loads(noted.read_text("utf-8"))["inputs"] == inputs:
        return
    with tempfile.TemporaryDirectory(prefix="codemode-guest-") as folder:
        staging = Path(folder)
        _stage(staging)
        made = staging / "guest.wasm"
        _componentize(staging, made)
        note = {"inputs": inputs, "sha256": hashlib.sha256(made.read_bytes()).hexdigest(), "tools": _tools()}
        partial = component.with_suffix(".partial")
        shutil.copyfile(made, partial)
        partial.replace(component)
    noted.write_text(json.dumps(note, indent=2) + "\n", "utf-8")


def inputs_digest() -> str:
    """Returns a digest of everything the component is made from: guest sources and tool versions."""
    digest = hashlib.sha256()
    digest.update(json.dumps(_tools()).encode())
    for path in sorted(_sources()):
        digest.update(f"{path.relative_to(GUEST).as_posix()}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _tools() -> dict[str, str]:
    return {name: version(name) for name in REQUIREMENTS}


def _sources() -> list[Path]:
    return [*GUEST.rglob("*.py"), GUEST / "world.wit"]


def _stage(staging: Path) -> None:
    app = staging / "app"
    for path in _sources():
        target = app / "guest" / path.relative_to(GUEST)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    tzdata = importlib.util.find_spec("tzdata")
    if tzdata is None or tzdata.origin is None:
        raise ComponentizeError("the tzdata package is not installed in the build environment")
    shutil.copytree(Path(tzdata.origin).parent, app / "tzdata", ignore=shutil.ignore_patterns("__pycache__"))
    # componentize-py adds the site-packages of the environment it runs in; it finds this empty one instead.
    (staging / "environment" / "lib" / "site-packages").mkdir(parents=True)


def _componentize(staging: Path, made: Path) -> None:
    app = staging / "app"
    command = [
        sys.executable, "-c", "import sys, componentize_py; sys.exit(componentize_py.script())",
        "--wit-path", str(app / "guest" / "world.wit"), "--world", "guest",
        "componentize", "guest.main", "--python-path", str(app), "--output", str(made),
    ]  # fmt: skip
    environment = os.environ | {"VIRTUAL_ENV": str(staging / "environment"), "PYTHONHASHSEED": "0"}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if finished.returncode != 0 or not made.exists():
        raise ComponentizeError(f"componentize-py failed:\n{finished.stdout}{finished.stderr}")
