"""The journal of a run's calls: each step of a call is recorded before it takes effect.

Above: tool_calls.py and the desk, which tell of it. Below: recordings/journal/run_journal.py, which writes it.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from broker.errors import StoreError
from broker.logging import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from broker.authorization.calls import PendingCall
    from broker.authorization.decision import Allow
    from broker.authorization.grants import Denial, Held
    from broker.recordings.parts import CallAnswer


_NOTHING = nullcontext()


class CallJournal(Protocol):
    """Records the steps of calls; what its methods raise ends the run.

    A `commit` to the store takes longer than everything else that is written about a call. So there are only two for
    each: before it is sent, and before the script gets its answer.
    """

    def together(self) -> AbstractContextManager[None]:
        """Write everything that is recorded inside the block together, at its end."""

    def with_next(self, write: Callable[[], object]) -> None:
        """Call `write` together with the next line, or now if there will be none."""

    @property
    def can_resume(self) -> bool:
        """Whether the run can be resumed from what is kept."""

    def asked(self, call_id: int) -> None:
        """Note that a person is about to be asked."""

    def decided(
        self, by: str, calls: Sequence[CallAnswer], *, grants: Sequence[Held] = (), denials: Sequence[Denial] = ()
    ) -> None:
        """Note that a person has answered."""

    def revoked(self, grant_id: str) -> None:
        """Note that a grant was taken back."""

    def denied(self, call_id: int, by: str) -> None:
        """Note that the call was refused."""

    def sent(self, call_id: int, call: PendingCall, allowed: Allow) -> None:
        """Note that the call was allowed and is about to be sent."""

    def kept(self, call_id: int, blocks: Mapping[str, Any]) -> None:
        """Note that content blocks of the answer are kept for the script, by the ids of their handles."""


class NoCallJournal:
    """Keeps nothing."""

    can_resume = False

    def together(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return _NOTHING

    def with_next(self, write: Callable[[], object]) -> None:
        """Write it now. Never raises: nobody could act on it."""
        try:
            write()
        except StoreError as error:
            logger().error("the store cannot be written", problem=str(error))

    def asked(self, call_id: int) -> None:
        """Do nothing."""

    def decided(
        self, by: str, calls: Sequence[CallAnswer], *, grants: Sequence[Held] = (), denials: Sequence[Denial] = ()
    ) -> None:
        """Do nothing."""

    def revoked(self, grant_id: str) -> None:
        """Do nothing."""

    def denied(self, call_id: int, by: str) -> None:
        """Do nothing."""

    def sent(self, call_id: int, call: PendingCall, allowed: Allow) -> None:
        """Do nothing."""

    def kept(self, call_id: int, blocks: Mapping[str, Any]) -> None:
        """Do nothing."""
