"""A call of `extract` as it is decided, counted, audited and recorded: like one of a tool, `@model.extract`.

Above: calls/extraction.py, and what reads recordings. Below: calls.py, policy.py. No server can have this name. The
model is the one that the embedding program or the client gave; what it can be believed to do is our own knowledge.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from broker.authorization.calls import PendingCall, ToolFacts

if TYPE_CHECKING:
    from broker.authorization.calls import Caller
    from broker.authorization.policy import Policy

SERVER = "@model"
TOOL = "extract"
DIGEST = f"sha256:{hashlib.sha256(b'extract(value, schema, instructions)').hexdigest()}"
"""Stands for what `extract` takes, as the digest of a definition does for a tool."""


def model_call(arguments: dict[str, Any], policy: Policy, caller: Caller) -> PendingCall:
    """Return a call of `extract` that is about to be decided."""
    labels = policy.labels_of(policy.config.model_labels)
    facts = ToolFacts(read_only=True, destructive=False, idempotent=True, open_world=True, labels=labels)
    return PendingCall(SERVER, TOOL, DIGEST, arguments, facts, caller)


def is_decided(function: str) -> bool:
    """Tell whether calls of what a script calls by this name are decided: tools, by `namespace.function`, and these."""
    return "." in function or function == TOOL
