"""What of a policy can hold for none of the configured servers: mostly a name that was mistyped, and protects nothing.

Above: `codemode doctor`. Below: the policy's model. A config with such parts is used all the same: a policy may be
shared by configs with different servers.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from broker.authorization.policy import Policy
from broker.authorization.policy_config import COPIED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from broker.authorization.policy_config import PolicyConfig, Rule
    from broker.upstreams.server_config import ServerConfig


def idle_parts(config: PolicyConfig, servers: Mapping[str, ServerConfig]) -> Iterator[str]:
    """Yield a sentence for each rule, quota and flow, or part of one, that no server can be meant by."""
    for number, rule in enumerate(config.rules or (), 1):
        title = f"rule {number}{f' {rule.name!r}' if rule.name else ''}"
        yield from _unknown_servers(title, rule.tools, servers)
        if rule.annotations is not None and (reached := _reached(rule, servers)) and not any(reached.values()):
            yield f'{title} looks at annotations, and none of its servers has "trust_annotations": true'
    for number, quota in enumerate(config.quotas, 1):
        yield from _unknown_servers(f"quota {number}", quota.tools, servers)
    policy = Policy(config)
    carried = {label for server in servers.values() for label in policy.labels_of(server.labels)}
    for number, flow in enumerate(config.flows or (), 1):
        for label in (flow.source, flow.to):
            if label not in carried | {COPIED}:
                yield f"flow {number}: no server has the label {label!r}"


def _unknown_servers(title: str, patterns: Iterable[str], servers: Mapping[str, ServerConfig]) -> Iterator[str]:
    for pattern in patterns:
        server = pattern.partition(".")[0]
        if "." in pattern and not any(fnmatchcase(name, server) for name in servers):
            yield f"{title}: no server is called {server!r}"


def _reached(rule: Rule, servers: Mapping[str, ServerConfig]) -> dict[str, bool]:
    """Return the servers whose tools a rule may be about, and whether their annotations are believed."""
    heads = [pattern.partition(".")[0] for pattern in rule.tools]
    return {
        name: server.trust_annotations
        for name, server in servers.items()
        if any(fnmatchcase(name, head) for head in heads)
    }
