"""Folders for this user alone, with those above them that are not there yet.

Above: whatever keeps something of the user, here and in the broker. Below: the file system. Who may write to a folder
above may put another one in the place of a private one, and how open a new folder is depends on the umask.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Make a folder, and each one above it that is missing, with mode 0700; one that is there is left as it is.

    Raises:
        OSError: It cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def prepare_folder(folder: Path, what: str, variable: str, *, is_written: bool) -> str:
    """Make a folder that only this user can enter; return why it cannot be used, or nothing.

    Args:
        folder: Where.
        what: How a sentence calls it.
        variable: Of the environment, that moves it elsewhere.
        is_written: Whether it is no use unless files can be made in it.
    """
    elsewhere = f"set {variable} elsewhere"
    try:
        make_private_folder(folder)
        found = folder.stat()
        if sys.platform != "win32" and found.st_uid != os.getuid():
            return f"the {what} {folder} belongs to another user: remove it or {elsewhere}"
        if sys.platform != "win32" and stat.S_IMODE(found.st_mode) & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        return f"the {what} {folder} cannot be used ({error.strerror}): {elsewhere}"
    if is_written and not os.access(folder, os.W_OK | os.X_OK):
        return f"the {what} {folder} cannot be written to: {elsewhere}"
    return ""
