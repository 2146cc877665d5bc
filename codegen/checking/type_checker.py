"""Runs `ty` on one script beside a `tools` package and reads its report.

Above: check.py. The script is hostile text: it is handed over as the one cell of a notebook, in which
`await` may stand outside functions, and neither parsed nor run here. The checker runs with an empty
environment, in a folder of its own that is deleted afterwards, or by a later process where its own was killed; its
time, its memory, its report and how many of it run at once are bounded.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ty import find_ty_bin

from codegen.errors import CheckerError

if TYPE_CHECKING:
    from collections.abc import Mapping

if sys.platform == "linux":
    import resource

# A hundred times what a script of a hundred lines takes.
TIMEOUT_SECONDS = 5.0
MEMORY_BYTES = 2 * 1024**3
REPORT_BYTES = 16 * 1024**2
MAX_CHECKERS = max(2, os.cpu_count() or 1)
PREFIX = "codemode-check-"
LEFT_BEHIND_SECONDS = 3_600
"""How old a folder is that no check still uses: each ends within seconds, or was killed."""
_LONGEST_MESSAGE = 2_000
_RUNNING = threading.BoundedSemaphore(MAX_CHECKERS)
GUEST_PYTHON = "3.14"
_SETTINGS = f'[environment]\npython-version = "{GUEST_PYTHON}"\npython-platform = "all"\n'


@dataclass(frozen=True, slots=True)
class Finding:
    """One report of the checker; lines and columns (in characters) count from 1, the end is exclusive."""

    rule: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int


def findings(script: str, package: Mapping[str, str]) -> list[Finding]:
    """Return what the checker says about `script`, in its order.

    Raises:
        CheckerError: If the checker cannot be started, takes too long or answers something else.
    """
    _remove_left_behind()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        root = Path(folder)
        (root / "tools").mkdir()
        for path, text in package.items():
            (root / path).write_text(text, encoding="utf-8")
        (root / "ty.toml").write_text(_SETTINGS, encoding="utf-8")
        (root / "script.ipynb").write_text(_notebook(script), encoding="utf-8")
        report = _run(root)
    try:
        return [_finding(result) for result in json.loads(report)["runs"][0]["results"]]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise CheckerError("the type checker wrote something that is not a report") from error


@cache
def _remove_left_behind() -> None:
    """Remove, once in a process, the folders of this user's checks whose process was killed; not on Windows."""
    if sys.platform != "win32":
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                found = folder.lstat()
                is_old = time.time() - found.st_mtime > LEFT_BEHIND_SECONDS
                if is_old and stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                    shutil.rmtree(folder, ignore_errors=True)


def _run(root: Path) -> str:
    """Run the checker in `root` within its bounds and return its report."""
    if not _RUNNING.acquire(timeout=TIMEOUT_SECONDS):
        raise CheckerError("too many scripts are being checked at once")
    try:
        with (root / "report.json").open("w+b") as report:
            status = _status(root, report)
            if status != 0:
                raise CheckerError(f"the type checker ended with status {status}")
            report.seek(0)
            text = report.read(REPORT_BYTES + 1)
    except OSError as error:
        raise CheckerError("the type checker could not be started") from error
    finally:
        _RUNNING.release()
    if len(text) > REPORT_BYTES:
        raise CheckerError(f"the type checker's report is longer than {REPORT_BYTES} bytes")
    return text.decode("utf-8", "replace")


def _status(root: Path, report: IO[bytes]) -> int:
    arguments = ["check", "--output-format", "sarif", "--exit-zero", "script.ipynb"]
    # Settings of the user or of an active environment would change the answer.
    environment = {"HOME": str(root), "XDG_CONFIG_HOME": str(root), "TY_MAX_PARALLELISM": "2"}
    with subprocess.Popen(  # noqa: S603  # nothing of the script is in the command
        [find_ty_bin(), *arguments],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=report,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _bound(process.pid)
            return process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise CheckerError(f"the type checker took longer than {TIMEOUT_SECONDS:.0f} seconds") from error
        finally:
            process.kill()


def _bound(pid: int) -> None:
    """Bound what the checker may use; where the platform cannot, its time alone is bounded."""
    if sys.platform == "linux":
        amounts = {resource.RLIMIT_AS: MEMORY_BYTES, resource.RLIMIT_FSIZE: REPORT_BYTES, resource.RLIMIT_CORE: 0}
        for kind, amount in amounts.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, kind, (amount, amount))


def _notebook(script: str) -> str:
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "script",
        "metadata": {},
        "outputs": [],
        "source": script,
    }
    return json.dumps(
        {
            "cells": [cell],
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def _finding(result: Any) -> Finding:
    region = result["locations"][0]["physicalLocation"]["region"]
    return Finding(
        rule=str(result["ruleId"]),
        message=str(result["message"]["text"])[:_LONGEST_MESSAGE],
        line=int(region["startLine"]),
        column=int(region["startColumn"]),
        end_line=int(region.get("endLine", region["startLine"])),
        end_column=int(region.get("endColumn", region["startColumn"])),
    )
