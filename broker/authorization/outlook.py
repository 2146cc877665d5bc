"""What is certain of every call of a tool before one is made, so that no script is written around refused calls.

Above: desk.py, for whoever describes tools. Below: policy, grants. It decides nothing: each call is judged by itself
when it is made, and what is uncertain, as it depends on arguments, the script or what a run has received, is not said.
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
    """Return what is certain of every call of a tool; None where one may be made unasked.

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
