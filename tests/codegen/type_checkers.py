"""Runs both type checkers over generated modules."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from ty import find_ty_bin


def ty_problems(modules: dict[str, str]) -> str:
    """Return what `ty` says about the modules, nothing if it is content."""
    return _problems(modules, [find_ty_bin(), "check", "--python-version", "3.14", "--output-format", "concise", "."])


def mypy_problems(modules: dict[str, str]) -> str:
    """Return what `mypy --strict` says about the modules, nothing if it is content."""
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.14", "--cache-dir", "/dev/null"]
    return _problems(modules, [*command, "--config-file", "", "."])


def _problems(modules: dict[str, str], command: list[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in modules.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    return "" if done.returncode == 0 else done.stdout + done.stderr
