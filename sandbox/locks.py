"""The lock of an image: the exact wheels that went in, in a form that pip reads as well."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOCKED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!_-]+) --hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Wheel:
    """One package of an image, as its lock names it."""

    name: str
    version: str
    sha256: str

    def __str__(self) -> str:
        """Return the line of the lock, which pip reads as well."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


def format_lock(wheels: Sequence[Wheel], asked: Sequence[str]) -> str:
    """Return a lock: a file that pip can read, sorted."""
    head = "# Made by `codemode image build`. The same image again: codemode image build --lock THIS-FILE\n"
    return head + f"# Asked for: {' '.join(asked)}\n" + "".join(f"{wheel}\n" for wheel in wheels)


def read_lock(text: str) -> tuple[Wheel, ...]:
    """Read a lock.

    Raises:
        ImageError: A line is not one package with version and hash.
    """
    wheels = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _LOCKED.fullmatch(line.strip())
        if found is None:
            raise ImageError(f"line {number} of the lock is not of the form NAME==VERSION --hash=sha256:DIGEST")
        wheels.append(Wheel(*found.groups()))
    return tuple(wheels)
