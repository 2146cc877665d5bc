"""What is decided about an instance when a run takes it. Until then it may wait in a pool, where all are alike.

Above: the isolates. Below: `Instance.take_on`, in this process or, by way of a frame, in a worker.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from sandbox.limits import Limits

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions of one run.

    Attributes:
        limits: Its bounds.
        seed: Where all its random numbers come from.
        wall_ns: Unix time at which its clock starts, in nanoseconds.
        origin_ns: Monotonic time at which its clock starts: where a kernel's last script has left it.
        is_kernel: Whether it goes on with what the run before in the same instance has left.
    """

    limits: Limits
    seed: int
    wall_ns: int
    origin_ns: int = 0
    is_kernel: bool = False

    def encode(self) -> bytes:
        """Write them for a worker."""
        return b"%d %d %d %d %b" % (self.seed, self.wall_ns, self.origin_ns, self.is_kernel, _written(self.limits))

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read what `encode` wrote; a worker trusts its host."""
        seed, wall_ns, origin_ns, is_kernel, limits = payload.split(b" ", 4)
        return cls(_read(limits), int(seed), int(wall_ns), int(origin_ns), is_kernel == b"1")


@lru_cache
def _written(limits: Limits) -> bytes:
    """Return limits as JSON, cached, because most runs have those of the run before."""
    return json.dumps({name: getattr(limits, name) for name in limits.__slots__}).encode()


@lru_cache
def _read(written: bytes) -> Limits:
    return Limits(**json.loads(written))


BEFORE_ANY_RUN = Terms(Limits(), seed=0, wall_ns=0)
"""The terms of an instance that no run has taken."""


def drop_output(_output: int, _text: str) -> None:
    """Drop what a guest prints that no run has taken."""
