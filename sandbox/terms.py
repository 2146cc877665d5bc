"""What is decided about an instance when it gets a script: until then it may wait in a pool, like all others.

Above: the isolates. Below: `Instance.take_on`, in this process or, by way of a frame, in a worker.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
        """Writes them for a worker."""
        return json.dumps({**_fields(self), "limits": _fields(self.limits)}).encode()

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Reads what comes from a host that is trusted."""
        fields = json.loads(payload)
        return cls(**{**fields, "limits": Limits(**fields["limits"])})


def _fields(item: Terms | Limits) -> dict[str, Any]:
    """Does what `asdict` does, which takes four times as long: it copies every number."""
    return {name: getattr(item, name) for name in item.__slots__}


BEFORE_ANY_RUN = Terms(Limits(), seed=0, wall_ns=0)
"""Of an instance that nobody has taken."""
