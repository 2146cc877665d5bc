"""The script that a command is given: read from a file or stdin, and what it is called in messages."""

from __future__ import annotations

import sys
from pathlib import Path

from broker.cli.terminal import Problem

STDIN = "-"


def read_script(script: str) -> str:
    """Return the text of a script.

    Raises:
        Problem: It cannot be read, or is not UTF-8.
    """
    try:
        source = sys.stdin.buffer.read() if script == STDIN else Path(script).read_bytes()
    except IsADirectoryError:
        raise Problem(f"{script} is a directory", "Name the script in it.") from None
    except OSError as error:
        raise Problem(
            f"cannot read the script {script}: {error.strerror}", "Name a Python file, or - for stdin."
        ) from None
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise Problem(f"the script {script} is not UTF-8 (line {line})", "Save it as UTF-8.") from None


def name_in_tracebacks(script: str) -> str:
    """Return its name without its folder, which is none of the script's business."""
    return "<stdin>" if script == STDIN else Path(script).name
