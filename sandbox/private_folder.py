"""Folders for this user alone, with those above them that are not there yet.

Above: whatever keeps something of the user, here and in the broker. Below: the file system. Who may write to a folder
above may put another one in the place of a private one, and how open a new folder is depends on the umask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Makes a folder, and each one above it that is missing, with mode 0700; one that is there is left as it is.

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
