"""Applies the policy: finds the rule that decides a call, and has the defaults for what the operator left out.

Above: decision.py, which asks it. Below: policy_config.py, where all that can be wrong with a policy was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.authorization.calls import ToolFacts
from broker.authorization.patterns import matcher
from broker.authorization.policy_config import Flow, Hints, PolicyConfig, Rule
from broker.authorization.predicates import Predicate, anything, nothing

if TYPE_CHECKING:
    from broker.authorization.argument_checks import Check
    from broker.authorization.calls import Caller, PendingCall
    from broker.authorization.policy_config import Effect
    from broker.upstreams.server_config import ServerConfig
    from codegen import ToolSpec

_EFFECTS: tuple[Effect, ...] = ("allow", "ask", "deny")
"""From the least strict to the strictest."""

_MAX_REMEMBERED = 10_000
"""Tools of callers, whose rules need not be looked for again."""


READS_OF_TRUSTED_SERVERS = Rule(
    name="reads of trusted servers",
    tools=("*",),
    annotations=Hints(read_only=True),
    effect="allow",
    reason="a server with trust_annotations says that the tool only reads",
)
EVERYTHING_ELSE = Rule(name="everything else", tools=("*",), effect="ask", reason="no rule says otherwise")
DEFAULT_FLOWS = (
    Flow(source="private", to="egress", effect="ask", reason="private data could leave"),
    Flow(
        source="untrusted", to="egress", effect="ask", reason="what the script read may have been written to misuse it"
    ),
)


class Policy:
    """A policy as it is applied: the rules that can match a tool are found once for each tool and caller."""

    def __init__(self, config: PolicyConfig | None = None) -> None:
        """Compile a section; None is the built-in default."""
        self.config = config or PolicyConfig()
        rules = (READS_OF_TRUSTED_SERVERS,) if self.config.rules is None else self.config.rules
        self.flows = DEFAULT_FLOWS if self.config.flows is None else self.config.flows
        is_own = self.config.rules is not None
        self._rules = [_Applied(rule, index + 1 if is_own else None) for index, rule in enumerate(rules)]
        self._rules.append(_Applied(EVERYTHING_ELSE, None))
        self._fitting: dict[tuple[Any, ...], tuple[tuple[Check, Check, _Applied], ...]] = {}

    def rule_for(self, call: PendingCall) -> tuple[Rule, str]:
        """Return the rule that decides a call, and what to call it.

        That is the first that matches, or one before it that may match and allows less.
        """
        arguments = call.arguments
        in_doubt: list[_Applied] = []
        for holds, may_hold, applied in self._fitting_rules(call):
            if holds(arguments):
                decisive = max(applied, *in_doubt, key=_strictness) if in_doubt else applied
                return decisive.rule, decisive.title if decisive is applied else f"{decisive.title}, which may match"
            if may_hold is not holds and may_hold(arguments):
                in_doubt.append(applied)
        raise AssertionError("the last rule matches everything")

    def effects_for(self, call: PendingCall) -> frozenset[Effect]:
        """Return the effects that the rules may have on calls of this tool, whatever the arguments and the script."""
        effects: set[Effect] = set()
        at_least: Effect = "allow"
        for applied in self._rules:
            rule = applied.rule
            fits = _fits_tool(rule, call)
            if fits is False or (fits is None and rule.effect == "allow"):
                continue
            is_for_all = not rule.arguments and rule.scripts is None
            if fits is None and is_for_all:
                at_least = max(at_least, rule.effect, key=_EFFECTS.index)
            else:
                effects.add(max(at_least, rule.effect, key=_EFFECTS.index))
            if fits and is_for_all:
                break
        return frozenset(effects)

    def facts_of(self, spec: ToolSpec, settings: ServerConfig) -> ToolFacts:
        """Return what the broker may believe about a tool of a server with these settings."""
        labels = self.labels_of(settings.labels)
        return ToolFacts.of(spec.annotations, trust_annotations=settings.trust_annotations, labels=labels)

    def labels_of(self, own: tuple[str, ...] | None) -> frozenset[str]:
        """Return the labels of a server, which has `own` ones or those of the policy."""
        return frozenset(self.config.labels if own is None else own)

    def _fitting_rules(self, call: PendingCall) -> tuple[tuple[Check, Check, _Applied], ...]:
        """Return the rules that match a call by everything but its arguments: what tells if these match or may match.

        Of a rule that does not allow, and looks at hints that nobody gives, the arguments only may match.
        """
        caller: Caller = call.caller
        key = (call.server, call.tool, call.digest, call.facts, caller.session, caller.principal, caller.script)
        fitting = self._fitting.get(key)
        if fitting is None:
            if len(self._fitting) >= _MAX_REMEMBERED:
                self._fitting.clear()
            found = [(_fits(applied.rule, call), applied) for applied in self._rules]
            fitting = self._fitting[key] = tuple(
                (applied.holds if fits else nothing, applied.may_hold, applied)
                for fits, applied in found
                if fits or (fits is None and applied.rule.effect != "allow")
            )
        return fitting


class _Applied:
    """A rule with its compiled predicate and its title."""

    __slots__ = ("holds", "may_hold", "rule", "title")

    def __init__(self, rule: Rule, number: int | None) -> None:
        self.rule = rule
        predicate = Predicate(rule.arguments) if rule.arguments else None
        self.holds: Check = anything if predicate is None else predicate.holds
        self.may_hold: Check = self.holds if predicate is None or rule.effect == "allow" else predicate.may_hold
        quoted = f" '{rule.name}'" if rule.name else ""
        self.title = f"rule {number}{quoted}" if number else f"the default{quoted}"


def _strictness(applied: _Applied) -> int:
    return _EFFECTS.index(applied.rule.effect)


def _fits(rule: Rule, call: PendingCall) -> bool | None:
    """Tell whether everything but the arguments matches; None where that is in doubt."""
    if rule.scripts is not None and call.caller.script not in rule.scripts:
        return False
    return _fits_tool(rule, call)


def _fits_tool(rule: Rule, call: PendingCall) -> bool | None:
    """Tell whether everything but the arguments and the script matches; None where that is in doubt."""
    caller = call.caller
    if not (
        any(matcher(pattern)(call.qualified_name) for pattern in rule.tools)
        and (rule.digests is None or call.digest in rule.digests)
        and _one_matches(rule.sessions, caller.session)
        and _one_matches(rule.principals, caller.principal)
    ):
        return False
    return rule.annotations is None or _are_said(rule.annotations, call.facts)


def _are_said(hints: Hints, facts: ToolFacts) -> bool | None:
    """Tell whether a tool is said to be all of this; None where something is not said, or not believed."""
    said = [(getattr(facts, name), value) for name, value in hints if value is not None]
    if any(fact is not None and fact is not value for fact, value in said):
        return False
    return None if any(fact is None for fact, _ in said) else True


def _one_matches(patterns: tuple[str, ...] | None, text: str) -> bool:
    return patterns is None or any(matcher(pattern)(text) for pattern in patterns)
