"""The script that a command is given: read from a file or stdin, and what it is called in messages."""

from __future__ import annotations

import sys
from pathlib import Path

from broker.cli.terminal import Problem
from broker.named_file import read_named
from sandbox.perform import MAX_SCRIPT_CHARACTERS, check_script

STDIN = "-"

_SHORTER = "Leave data out of it: a tool can read them from a file."
_MAX_BYTES = 4 * MAX_SCRIPT_CHARACTERS
"""Of UTF-8. A file is read no further: its name may be that of a device without end."""


def read_script(script: str) -> str:
    """Return the text of a script.

    Raises:
        Problem: It cannot be read, is not UTF-8, or is too long.
    """
    try:
        most = _MAX_BYTES + 1
        source = sys.stdin.buffer.read(most) if script == STDIN else read_named(Path(script), most)
    except IsADirectoryError:
        raise Problem(f"{Path(script)} is a directory", "Name the script in it.") from None
    except OSError as error:
        raise Problem(
            f"cannot read the script {script}: {error.strerror}", "Name a Python file, or - for stdin."
        ) from None
    if len(source) > _MAX_BYTES:
        raise Problem(f"{script}: the script has more than {MAX_SCRIPT_CHARACTERS} characters", _SHORTER)
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise Problem(f"the script {script} is not UTF-8 (line {line})", "Save it as UTF-8.") from None
    try:
        check_script(text)
    except ValueError as error:
        raise Problem(f"{script}: {error}", _SHORTER) from None
    return text


def name_in_tracebacks(script: str) -> str:
    """Return its name without its folder, which is none of the script's business."""
    return "<stdin>" if script == STDIN else Path(script).name
