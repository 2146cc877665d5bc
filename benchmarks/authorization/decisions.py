"""What one decision costs with 200 rules and 200 grants, and 10,000 decisions of one run.

    python -m benchmarks.authorization decisions

Three policies: every rule is about another tool; every rule is about this tool and looks at an argument, and none but
the last one matches; and the grants likewise. The cost is that of `authorize`, and of a whole decision at the desk,
which also counts quotas. Times are of the processor; beside them stands what an empty loop takes.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.authorization.calls import PendingCall, ToolFacts
from broker.authorization.decision import authorize
from broker.authorization.desk import ConsentDesk
from broker.authorization.flow import FlowState
from broker.authorization.grants import Grant, GrantBook
from broker.authorization.policy import Policy
from broker.authorization.policy_config import PolicyConfig
from broker.authorization.predicates import Predicate

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 200
DECISIONS = 10_000
ALLOWED_MICROSECONDS = 50
ALLOWED_SECONDS = 0.5


def calls() -> list[PendingCall]:
    """Return the calls of a loop of writes."""
    facts = ToolFacts(labels=frozenset({"egress"}))
    return [
        PendingCall("files", "write", "sha256:1", {"path": f"notes/{n}.md", "text": "x" * 80, "mode": "w"}, facts)
        for n in range(DECISIONS)
    ]


def policies() -> dict[str, tuple[list[dict[str, Any]], list[Grant]]]:
    """Return rules and grants by what is special about them."""
    others = [{"tools": f"server{n}.*", "effect": "deny"} for n in range(COUNT)]
    other_grants = [Grant(f"server{n}.*") for n in range(COUNT - 1)] + [Grant("files.write")]
    looking = [
        {"tools": "files.*", "arguments": {"/mode": {"equals": f"m{n}"}}, "effect": "deny"} for n in range(COUNT)
    ]
    looking_grants = [
        Grant("files.write", arguments=Predicate.parse({"/mode": {"equals": f"m{n}"}})) for n in range(COUNT - 1)
    ]
    globbing = [
        {"tools": "files.*", "arguments": {"/path": {"glob": f"x{n}/*"}}, "effect": "deny"} for n in range(COUNT)
    ]
    last = Grant("files.write", arguments=Predicate.parse({"/path": {"glob": "notes/*"}}))
    return {
        "other tools": (others, other_grants),
        "this tool, equality": (looking, [*looking_grants, last]),
        "this tool, globs": (globbing, [*looking_grants, last]),
    }


def per_call(decide: Callable[[PendingCall], object], asked: list[PendingCall]) -> float:
    """Return the microseconds of one decision, the best of five rounds."""
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for call in asked:
            decide(call)
        best = min(best, time.process_time() - began)
    return best / len(asked) * 1e6


def main() -> None:
    """Print the table."""
    asked = calls()
    empty = per_call(id, asked)
    print(f"{COUNT} rules, {COUNT} grants, {DECISIONS} decisions of one run; an empty loop: {empty:.2f} µs a turn")
    print(f"{'policy':24} {'authorize':>10} {'at the desk':>12} {'10,000 at the desk':>20}")
    for name, (rules, grants) in policies().items():
        policy = Policy(PolicyConfig.model_validate({"rules": rules}))
        book, flow = GrantBook.of(grants), FlowState()
        pure = per_call(partial(authorize, policy=policy, grants=book, flow=flow, now=0.0), asked)
        desk = ConsentDesk(grants, policy=policy).for_run("run_1", "")
        whole = per_call(desk.decide_now, asked)
        print(f"{name:24} {pure:7.1f} µs {whole:9.1f} µs {whole * DECISIONS / 1e6:17.2f} s")
    print(f"allowed: {ALLOWED_MICROSECONDS} µs a decision, {ALLOWED_SECONDS} s for {DECISIONS}")
