"""What is certain about every call of a tool before one is made, so that no script relies on refused calls.

Above: desk.py, for whoever describes tools. Below: policy, grants. It decides nothing: each call is decided when it
is made. What depends on arguments, the script or data that a run has received is uncertain, and not said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from broker.authorization.calls import PendingCall
    from broker.authorization.grants import GrantBook
    from broker.authorization.policy import Policy

Outlook: TypeAlias = Literal["refused", "asked"]
"""Every call will be refused; none is made unless a person agrees first."""


def outlook(call: PendingCall, *, policy: Policy, grants: GrantBook, can_ask: bool, now: float) -> Outlook | None:
    """Return what is certain about every call of a tool; None if a call may be made unasked.

    Args:
        call: Any call of the tool; its arguments are not looked at.
        policy: What the operator configured.
        grants: What people have allowed and denied.
        can_ask: Whether somebody is there to be asked, or may come.
        now: Seconds since the epoch, for grants that expire.
    """
    effects = policy.effects_for(call)
    if grants.denies_all(call) or effects == {"deny"}:
        return "refused"
    if "allow" in effects or grants.may_cover(call, now):
        return None
    return "asked" if can_ask else "refused"
