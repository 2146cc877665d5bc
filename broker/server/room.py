"""Which session gives way where all of them are taken: the longest idle one of whoever holds the most.

Above: identity.py, for the sessions of the broker; connections.py, for the connections of the older era; asking.py, for
requests that wait for a person; runs.py, for runs that wait for their turn. Below: nothing. Pure. A principal that
takes all room loses its own to the others; who holds no more than the one who asks loses nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

Key = TypeVar("Key", bound="Hashable")


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


def gives_way(claims: Mapping[Key, Claim], asker: str) -> Key | None:
    """Return the key of the claim that goes, so that `asker` can have one more; None where none can.

    Never a busy one, and none of another principal that holds as many as the asker or fewer.
    """
    held = Counter(claim.principal for claim in claims.values())
    held[asker] += 0
    idle = {
        key: claim
        for key, claim in claims.items()
        if not claim.is_busy and (claim.principal == asker or held[claim.principal] > held[asker])
    }
    return max(idle, key=lambda key: (held[idle[key].principal], -idle[key].used_at), default=None)
