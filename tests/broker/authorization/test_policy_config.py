"""The policy section of a config: what is accepted, and what is said of the rest."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from broker import Config, ConfigError
from broker.authorization.policy_config import policy_json_schema

SCHEMA_FILE = Path(__file__).parents[3] / "docs" / "policy.schema.json"
SERVERS = {"git": {"command": "mcp-server-git", "labels": ["private"]}}

WHOLE = {
    "rules": [
        {"name": "reads", "tools": ["git.*"], "annotations": {"read_only": True}, "effect": "allow"},
        {"tools": "mail.send", "arguments": {"/to": {"each": {"glob": "*@ours.example"}}}, "effect": "allow"},
        {"tools": "*", "principals": "guest-*", "effect": "deny", "reason": "guests only read"},
    ],
    "quotas": [{"tools": "mail.*", "per_minute": 30, "per_run": 100, "concurrent": 4, "each_tool": True}],
    "flows": [
        {"from": "private", "to": "egress", "effect": "ask"},
        {"from": "copied", "to": "egress", "effect": "deny"},
    ],
    "labels": ["untrusted"],
    "flow_memory": "session",
    "answer_timeout_seconds": 60,
}


def parse(policy, servers=None) -> Config:
    text = json.dumps({"mcpServers": SERVERS if servers is None else servers, "policy": policy})
    return Config.parse(text, source="mcp.json", folder=Path(), environment={})


def test_a_whole_policy_is_read_and_fits_the_published_schema():
    policy = parse(WHOLE).policy
    assert policy.rules is not None
    assert [rule.effect for rule in policy.rules] == ["allow", "allow", "deny"]
    assert parse(WHOLE).servers["git"].labels == ("private",)
    jsonschema.validate(WHOLE, policy_json_schema())


def test_the_published_schema_is_current():
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == policy_json_schema(), (
        "write it again with: codemode policy schema > docs/policy.schema.json"
    )


FAULTS = {
    "unknown effect": (
        {"rules": [{"tools": "*", "effect": "permit"}]},
        "rule 1: effect: must be 'allow', 'ask' or 'deny'",
    ),
    "no effect": ({"rules": [{"tools": "*"}]}, "rule 1: effect: is missing"),
    "no tools": ({"rules": [{"effect": "deny"}]}, "rule 1: tools: is missing"),
    "empty list": (
        {"rules": [{"tools": [], "effect": "deny"}]},
        "rule 1: tools: is empty; an empty list matches nothing",
    ),
    "empty pattern": (
        {"rules": [{"tools": "", "effect": "deny"}]},
        "rule 1: tools: 0: a pattern of tools is empty; '*' means every tool",
    ),
    "a pattern that matches nothing": (
        {"rules": [{"name": "n", "tools": ["git"], "effect": "deny"}]},
        "rule 1 'n': tools: 0: the pattern 'git' can match no tool; write 'server.tool', or 'git.*' for a whole server",
    ),
    "misspelt": (
        {"rules": [{"tools": "*", "efect": "deny", "effect": "deny"}]},
        "rule 1: efect: is unknown; did you mean 'effect'?",
    ),
    "the second": (
        {"rules": [{"tools": "*", "effect": "deny"}, {"name": "w", "tools": "*", "effect": 3}]},
        "rule 2 'w': effect: must be 'allow', 'ask' or 'deny'",
    ),
    "an impossible predicate": (
        {"rules": [{"tools": "*", "effect": "deny", "arguments": {"/a": {"min": 2, "max": 1}}}]},
        "rule 1: arguments: /a: can never hold: 'min' is greater than 'max'",
    ),
    "no pointer": (
        {"rules": [{"tools": "*", "effect": "deny", "arguments": {"a": {"equals": 1}}}]},
        (
            "rule 1: arguments: a: is not a JSON pointer; write '/name' for the argument 'name', "
            "'/name/0' for its first item"
        ),
    ),
    "no hint": (
        {"rules": [{"tools": "*", "effect": "deny", "annotations": {}}]},
        "rule 1: annotations: names no hint; remove it or name one",
    ),
    "a digest": (
        {"rules": [{"tools": "*", "effect": "deny", "scripts": "abc"}]},
        "rule 1: scripts: 0: must be sha256: and 64 hexadecimal digits",
    ),
    "a quota of nothing": (
        {"quotas": [{"name": "q", "tools": "*"}]},
        "quota 1 'q': limits nothing; give 'per_minute', 'per_run' or 'concurrent'",
    ),
    "a quota of none": (
        {"quotas": [{"tools": "*", "per_run": 0}]},
        "quota 1: per_run: must be greater than or equal to 1",
    ),
    "a flow from nowhere": ({"flows": [{"to": "egress", "effect": "ask"}]}, "flow 1: from: is missing"),
    "a label in capitals": (
        {"flows": [{"from": "Private", "to": "egress", "effect": "ask"}]},
        "flow 1: from: must be a word in small letters, as 'private'",
    ),
    "our own label": ({"labels": ["copied"]}, "labels: 'copied' is what we find ourselves; choose another word"),
    "no list": ({"rules": {"tools": "*"}}, "rules: must be a list"),
    "no object": ([], "must be a JSON object"),
    "a misspelt section": ({"rule": []}, "rule: is unknown; did you mean 'rules'?"),
    "a section of another program": (
        {"on": 1},
        "on: is unknown; known are answer_timeout_seconds, flow_memory, flows, labels, model_labels, quotas, rules",
    ),
    "a field of another program": (
        {"flows": [{"from": "private", "to": "egress", "effect": "ask", "decision": "deny"}]},
        "flow 1: decision: is unknown; known are effect, from, reason, to",
    ),
    "a hint that no server gives": (
        {"rules": [{"tools": "*", "effect": "deny", "annotations": {"safe": True}}]},
        "rule 1: annotations: safe: is unknown; known are destructive, idempotent, open_world, read_only",
    ),
    "for ever": ({"answer_timeout_seconds": 1e9}, "answer_timeout_seconds: must be less than or equal to 604800"),
}


@pytest.mark.parametrize(("policy", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_named_with_file_rule_and_field(policy, message):
    with pytest.raises(ConfigError) as caught:
        parse(policy)
    assert str(caught.value) == f"mcp.json: policy: {message}"


def test_every_fault_of_a_config_is_named_at_once():
    servers = {"git": {"command": "x", "labels": ["Private"]}, "bad": {}}
    with pytest.raises(ConfigError) as caught:
        parse({"rules": [{"tools": "*", "effect": "no"}, {"tools": "*", "effect": "no"}]}, servers)
    assert len(caught.value.problems) == 4, caught.value


@pytest.mark.parametrize("secret", ["hunter2hunter2", "hunter2hunter2.", "hunter2.hunter2"])
def test_a_value_from_the_environment_is_not_in_the_text_of_an_error(secret):
    text = '{"mcpServers": {}, "policy": {"rules": [{"tools": "${SECRET}", "effect": "${SECRET}"}]}}'
    with pytest.raises(ConfigError) as caught:
        Config.parse(text, source="c", folder=Path(), environment={"SECRET": secret})
    assert "hunter2" not in str(caught.value)
