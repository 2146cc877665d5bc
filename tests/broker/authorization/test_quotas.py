"""What is counted against a quota, and for how long."""

from __future__ import annotations

import pytest

from broker import PolicyConfig
from broker.authorization.calls import Caller, PendingCall
from broker.authorization.policy import Policy
from broker.authorization.quotas import Quotas


def quotas(*given, clock=lambda: 0.0) -> Quotas:
    return Quotas(Policy(PolicyConfig.model_validate({"quotas": given})), clock=clock)


def call(name="git.git_log", run="a") -> PendingCall:
    server, tool = name.split(".")
    return PendingCall(server, tool, "sha256:1", {}, caller=Caller(run=run))


def test_the_end_of_a_run_takes_its_own_counts_away_and_no_others():
    counts = quotas({"tools": "git.*", "per_run": 1})
    for run in "ab":
        counts.count(call(run=run))
    counts.end_run("a")
    assert counts.used_up(call(run="a")) == ""
    assert counts.used_up(call(run="b")) == "the quota 1 (1 call in a run) is used up"


@pytest.mark.parametrize(("name", "is_counted"), [("git.git_log", True), ("mail.send", True), ("notes.read", False)])
def test_a_quota_of_several_patterns_counts_what_any_of_them_matches(name, is_counted):
    counts = quotas({"tools": ["git.*", "mail.send"], "per_run": 1})
    counts.count(call("mail.send"))
    assert bool(counts.used_up(call(name))) is is_counted


def test_a_call_counts_against_every_quota_that_it_falls_under():
    counts = quotas({"tools": "mail.*", "per_run": 1}, {"tools": "*", "per_run": 1}, {"tools": "git.*", "per_run": 2})
    counts.count(call())
    assert counts.used_up(call()) == "the quota 2 (1 call in a run) is used up"


def test_a_call_is_of_the_last_minute_until_a_minute_has_passed():
    now = [0.0]
    counts = quotas({"tools": "*", "per_minute": 2}, clock=lambda: now[0])
    for now[0] in (0.0, 20.0):
        counts.count(call())
    now[0] = 59.5
    assert counts.used_up(call()) == "the quota 1 (2 calls a minute) is used up for 1 s"
    now[0] = 60.0
    assert counts.used_up(call()) == ""
    counts.count(call())
    assert counts.used_up(call()) == "the quota 1 (2 calls a minute) is used up for 20 s"


def test_a_call_of_before_an_interruption_counts_for_its_run_and_not_for_the_minute():
    counts = quotas({"tools": "*", "per_minute": 1}, {"tools": "*", "per_run": 2})
    counts.count_again(call())
    assert counts.used_up(call()) == ""
    counts.count_again(call())
    assert counts.used_up(call()) == "the quota 2 (2 calls in a run) is used up"
