"""Finds the parts of a policy that concern no configured server: mostly a mistyped name, which protects nothing.

Above: `codemode doctor`, `codemode policy test`. Below: the policy's model. A config with such parts is used all the
same: a policy may be shared by configs with different servers. A pattern with wildcards that matches no tool is not
told: it may be a precaution.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from broker.authorization.model_calls import SERVER
from broker.authorization.patterns import has_wildcards, is_exact, literal, matcher
from broker.authorization.policy import Policy
from broker.authorization.policy_config import COPIED
from broker.authorization.predicates import pointer_parts
from codegen.near_names import near_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from broker.authorization.policy_config import PolicyConfig, Quota, Rule
    from broker.authorization.predicates import ArgumentTest
    from broker.upstreams.server_config import ServerConfig
    from codegen import ToolSpec

_MORE_THAN_PROPERTIES = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "dependencies", "patternProperties"}
)
"""What else in a schema may name an argument."""


def idle_parts(config: PolicyConfig, servers: Mapping[str, ServerConfig]) -> Iterator[str]:
    """Yield a sentence for each rule, quota and flow, or part of one, that concerns no server."""
    for number, rule in enumerate(config.rules or (), 1):
        title = _title("rule", number, rule)
        yield from _unknown_servers(title, rule.tools, servers)
        if rule.annotations is not None:
            yield from _untrusted_servers(title, rule.tools, servers)
    yield from _covered_rules(config.rules or ())
    for number, quota in enumerate(config.quotas, 1):
        yield from _unknown_servers(_title("quota", number, quota), quota.tools, servers)
    policy = Policy(config)
    carried = labels_carried(policy, servers)
    for number, flow in enumerate(config.flows or (), 1):
        for label in (flow.source, flow.to):
            if label not in carried | {COPIED}:
                yield f"flow {number}: no server has the label {label!r}"


def idle_names(config: PolicyConfig, listings: Mapping[str, Sequence[ToolSpec]]) -> Iterator[str]:
    """Yield a sentence for each tool or argument that a rule or quota names and its server does not have.

    Args:
        config: The policy.
        listings: The tools of each server that has listed them; about other servers nothing is known.
    """
    for number, rule in enumerate(config.rules or (), 1):
        title = _title("rule", number, rule)
        yield from _unknown_tools(title, rule.tools, listings)
        if specs := [spec for listed in listings.values() for spec in listed if _is_meant(spec, rule.tools)]:
            for fault in unknown_arguments(specs, rule.arguments):
                yield f"{title}: {fault}"
    for number, quota in enumerate(config.quotas, 1):
        yield from _unknown_tools(_title("quota", number, quota), quota.tools, listings)


def unknown_arguments(specs: Iterable[ToolSpec], tests: Mapping[str, ArgumentTest]) -> Iterator[str]:
    """Yield a clause for each tested argument that no tool takes; none if a tool takes more than it names."""
    known: set[str] = set()
    for spec in specs:
        names = _argument_names(spec)
        if names is None:
            return
        known |= names
    for pointer, test in tests.items():
        parts = pointer_parts(pointer)
        if parts and parts[0] not in known and test.present is not False:
            yield f"its tools take no argument {parts[0]!r}{meant(parts[0], sorted(known))}"


def labels_carried(policy: Policy, servers: Mapping[str, ServerConfig]) -> set[str]:
    """Return the labels that servers have, and the model behind `extract`."""
    own = [*(server.labels for server in servers.values()), policy.config.model_labels]
    return {label for labels in own for label in policy.labels_of(labels)}


def meant(name: str, names: Iterable[str]) -> str:
    """Return what follows a sentence about a name that is not there: the one that was probably meant, if any."""
    near = near_name(name, names)
    return "" if near is None else f"; did you mean {near!r}?"


def _title(kind: str, number: int, part: Rule | Quota) -> str:
    return f"{kind} {number}{f' {part.name!r}' if part.name else ''}"


def _covered_rules(rules: Sequence[Rule]) -> Iterator[str]:
    """Yield the rules that decide nothing because rules before them, without conditions, match all their tools."""
    before: list[tuple[str, str]] = []
    for number, rule in enumerate(rules, 1):
        title = _title("rule", number, rule)
        covering = [next((other for wide, other in before if _covers(wide, pattern)), None) for pattern in rule.tools]
        if None not in covering:
            others = " and ".join(dict.fromkeys(filter(None, covering)))
            yield f"{title} never decides: before it, {others} takes every call; a narrower rule belongs first"
        elif _has_no_condition(rule):
            before += [(pattern, title) for pattern in rule.tools]


def _has_no_condition(rule: Rule) -> bool:
    conditions = (rule.annotations, rule.sessions, rule.principals, rule.scripts, rule.digests)
    return not rule.arguments and all(condition is None for condition in conditions)


def _covers(wide: str, pattern: str) -> bool:
    """Tell whether a pattern surely matches every tool that another matches."""
    head = wide[:-1]
    is_prefix = wide.endswith("*") and not has_wildcards(head) and pattern.startswith(head)
    return wide == pattern or is_prefix or (is_exact(pattern) and bool(matcher(wide)(literal(pattern))))


def _unknown_tools(title: str, patterns: Iterable[str], listings: Mapping[str, Sequence[ToolSpec]]) -> Iterator[str]:
    for pattern in filter(is_exact, patterns):
        server, _, tool = literal(pattern).partition(".")
        names = [spec.name for spec in listings.get(server, ())]
        if server in listings and tool not in names:
            yield f"{title}: {server} has no tool {tool!r}{meant(tool, names)}"


def _is_meant(spec: ToolSpec, patterns: Iterable[str]) -> bool:
    return any(matcher(pattern)(spec.qualified_name) for pattern in patterns)


def _argument_names(spec: ToolSpec) -> set[str] | None:
    """Return the arguments that a tool takes; None where it may take others than it names."""
    schema = spec.input_schema
    if not isinstance(schema, dict) or schema.get("additionalProperties", False) is not False:
        return None
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not _MORE_THAN_PROPERTIES.isdisjoint(schema):
        return None
    return set(properties)


def _unknown_servers(title: str, patterns: Iterable[str], servers: Mapping[str, ServerConfig]) -> Iterator[str]:
    for pattern in patterns:
        server = pattern.partition(".")[0]
        if "." in pattern and not any(fnmatchcase(name, server) for name in (*servers, SERVER)):
            yield f"{title}: no server is called {server!r}"


def _untrusted_servers(title: str, patterns: Iterable[str], servers: Mapping[str, ServerConfig]) -> Iterator[str]:
    """Yield the patterns for which annotations decide nothing, since those of none of their servers are believed."""
    for pattern in patterns:
        head = pattern.partition(".")[0]
        trusts = [server.trust_annotations for name, server in servers.items() if fnmatchcase(name, head)]
        if trusts and not any(trusts):
            yield f'{title} looks at annotations, and no server of {pattern!r} has "trust_annotations": true'
