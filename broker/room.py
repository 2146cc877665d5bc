"""What gives way where all room is taken: the longest idle claim of whoever holds the most.

Above: the server, for sessions, connections of the older era, requests that wait for a person and runs that wait for
their turn; surface/outputs.py, for kept output. Below: nothing. Pure. A principal that takes all room loses its own to
the others; who holds no more than the one who asks loses nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

Key = TypeVar("Key", bound="Hashable")
Held = TypeVar("Held", bound="Claim")


class Claim(Protocol):
    """What somebody holds of a room that others want a part of too."""

    @property
    def principal(self) -> str:
        """Who holds it; empty where nobody was authenticated."""

    @property
    def used_at(self) -> float:
        """When it was last in use."""

    @property
    def is_busy(self) -> bool:
        """Whether something goes on in it, as a script that runs."""


def gives_way(claims: Mapping[Key, Held], asker: str, size: Callable[[Held], int] = lambda _: 1) -> Key | None:
    """Return the key of the claim that goes, so that `asker` can have more; None where none can.

    Never a busy one, and none of another principal that holds as much as the asker or less; `size` is how much of the
    room a claim takes.
    """
    held = Counter({asker: 0})
    for claim in claims.values():
        held[claim.principal] += size(claim)
    idle = {
        key: claim
        for key, claim in claims.items()
        if not claim.is_busy and (claim.principal == asker or held[claim.principal] > held[asker])
    }
    return max(idle, key=lambda key: (held[idle[key].principal], -idle[key].used_at), default=None)
