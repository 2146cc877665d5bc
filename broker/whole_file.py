"""Writes a file that is there whole or not at all, whatever ends the process.

Above: what people keep for themselves: configs, exported recordings, tokens. Below: the system.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PRIVATE = 0o600


def write_whole(path: Path, pieces: Iterable[str], *, mode: int = PRIVATE) -> None:
    """Write text to a file of this mode; where `path` is a link, to the file that it names.

    Raises:
        OSError: It cannot be written; what was there is as it was.
    """
    path = Path(os.path.realpath(path))
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}", suffix=".partial")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
        Path(partial).chmod(mode)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
