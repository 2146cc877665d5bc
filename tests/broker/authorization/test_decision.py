"""One call, one decision: what the policy, people and the flow of data say of it, and which of them counts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.authorization.calls import Caller, PendingCall, ToolFacts
from broker.authorization.decision import Allow, Ask, Deny, authorize
from broker.authorization.flow import FlowState
from broker.authorization.grants import Denial, Grant, GrantBook
from broker.authorization.policy import Policy
from broker.authorization.policy_config import Flow, PolicyConfig, Rule
from broker.authorization.predicates import Predicate
from broker.errors import PatternError

CALL = PendingCall("git", "git_log", "sha256:1", {"repo_path": "."})
NOW = datetime(2026, 11, 21, tzinfo=UTC).timestamp()


def decide(call=CALL, *, grants=(), denials=(), policy=None, flow=None, **settings):
    return authorize(
        call,
        policy=Policy(PolicyConfig(**(policy or {}))),
        grants=GrantBook.of(grants, denials),
        flow=flow or FlowState(),
        now=NOW,
        **settings,
    )


def said(decision) -> tuple[str, str]:
    return type(decision).__name__, decision.basis.kind


PATTERNS = {
    "nothing granted": ([], [], ("Ask", "rule")),
    "exactly": (["git.git_log"], [], ("Allow", "grant")),
    "all of a server": (["git.*"], [], ("Allow", "grant")),
    "written out: all": (["*"], [], ("Allow", "grant")),
    "one character": (["git.git_lo?"], [], ("Allow", "grant")),
    "another tool": (["git.git_status"], [], ("Ask", "rule")),
    "another server": (["hub.git_log"], [], ("Ask", "rule")),
    "a longer name": (["git.git_log_all"], [], ("Ask", "rule")),
    "only the beginning": (["git.git_lo"], [], ("Ask", "rule")),
    "case counts": (["git.GIT_LOG"], [], ("Ask", "rule")),
    "homoglyph": (["g\u0456t.git_log"], [], ("Ask", "rule")),
    "zero width": (["git.git_log\u200b"], [], ("Ask", "rule")),
    "denied": ([], ["git.*"], ("Deny", "denial")),
    "denied beats granted": (["git.git_log"], ["git.*"], ("Deny", "denial")),
    "another is denied": (["git.*"], ["git.git_push"], ("Allow", "grant")),
}


@pytest.mark.parametrize(("grants", "denials", "decision"), PATTERNS.values(), ids=PATTERNS.keys())
def test_a_call_is_decided_by_the_patterns(grants, denials, decision):
    assert said(decide(grants=map(Grant, grants), denials=map(Denial, denials))) == decision


def test_a_grant_with_a_digest_lapses_when_the_tool_changes():
    grant = Grant.parse("git.git_log@sha256:1")
    assert said(decide(grants=[grant])) == ("Allow", "grant")
    assert said(decide(PendingCall("git", "git_log", "sha256:2", {}), grants=[grant])) == ("Ask", "rule")


def test_the_words_of_a_denial_reach_the_script():
    denied = decide(denials=[Denial("git.*", "not today.")])
    assert isinstance(denied, Deny)
    assert denied.reason == "git.git_log was refused: not today."


GRANTS = {
    "the arguments fit": (Grant.parse('git.* {"/repo_path": {"equals": "."}}'), True),
    "other arguments": (Grant.parse('git.* {"/repo_path": {"equals": "/"}}'), False),
    "an argument that is missing": (Grant("git.*", arguments=Predicate.parse({"/x": {"max": 3}})), False),
    "not expired": (Grant("git.*", expires_at=datetime(2026, 11, 22, tzinfo=UTC)), True),
    "expired": (Grant("git.*", expires_at=datetime(2026, 11, 21, tzinfo=UTC)), False),
    "one call left": (Grant("git.*", calls=1), True),
    "of this run": (Grant("git.*", scope="run"), True),
}


@pytest.mark.parametrize(("grant", "holds"), GRANTS.values(), ids=GRANTS.keys())
def test_a_grant_holds_for_what_it_says(grant, holds):
    assert isinstance(decide(grants=[grant]), Allow if holds else Ask)


def test_a_grant_of_another_run_does_not_hold():
    book = GrantBook()
    book.add(Grant("*", scope="run"), run="first")
    for run, expected in (("first", Allow), ("second", Ask)):
        call = PendingCall("git", "git_log", "sha256:1", {}, caller=Caller(run=run))
        assert isinstance(authorize(call, policy=Policy(), grants=book, flow=FlowState(), now=NOW), expected)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "a pattern of tools is empty; '*' means every tool"),
        ("git", "the pattern 'git' can match no tool; write 'server.tool', or 'git.*' for a whole server"),
        ("git.[z-a]*", "the pattern 'git.[z-a]*' can match no tool: it has a set of no characters, as '[z-a]'"),
        ("git.", "the pattern 'git.' can match no tool; write 'server.tool', or 'git.*' for a whole server"),
    ],
)
@pytest.mark.parametrize("kind", [Grant, Grant.parse, Denial])
def test_a_pattern_that_matches_nothing_is_refused(kind, pattern, message):
    with pytest.raises(PatternError) as caught:
        kind(pattern)
    assert str(caught.value) == message


IMPOSSIBLE = {
    "no calls": (lambda: Grant("*", calls=0), "a grant for 0 calls allows nothing"),
    "more calls than can be counted": (
        lambda: Grant("*", calls=10**9),
        "a grant is for at most 999,999,999 calls, or for any number",
    ),
    "a time of no zone": (
        lambda: Grant("*", expires_at=datetime(2026, 1, 1)),  # noqa: DTZ001  # what is refused
        "the expiry of a grant needs a time zone",
    ),
    "everything permanently": (
        lambda: Grant("*", scope="always"),
        "a permanent grant names one tool and its digest",
    ),
    "a digest that no tool has": (
        lambda: Grant("git.git_log", "0123abcd"),
        "the digest of a grant begins with 'sha256:', as that of each tool; not '0123abcd'",
    ),
    "a permanent denial": (
        lambda: Denial("git.*", scope="always"),  # type: ignore[arg-type]  # what is refused
        "the scope of a denial is run or session",
    ),
    "no JSON": (
        lambda: Grant.parse("git.* {nothing"),
        'what follows the pattern is not a JSON object; write {"/argument": {"equals": "value"}}',
    ),
    "two tests of one argument": (
        lambda: Grant.parse('git.* {"/x": {"equals": 1}, "/x": {"present": true}}'),
        "what follows the pattern is ambiguous: the key '/x' is given twice in one object",
    ),
    "no pointer": (
        lambda: Grant.parse('git.* {"x": {"equals": 1}}'),
        "arguments: x: is not a JSON pointer; write '/name' for the argument 'name', '/name/0' for its first item",
    ),
}


@pytest.mark.parametrize(("make", "message"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_a_grant_that_cannot_be_meant_is_refused(make, message):
    with pytest.raises(PatternError) as caught:
        make()
    assert str(caught.value) == message


READ = ToolFacts(read_only=True)

RULES = {
    "no policy: a read of a trusted server": (None, READ, ("Allow", "rule")),
    "no policy: a tool that says nothing": (None, ToolFacts(), ("Ask", "rule")),
    "an empty list allows nothing": ([], READ, ("Ask", "rule")),
    "allowed by name": ([{"tools": "git.*", "effect": "allow"}], ToolFacts(), ("Allow", "rule")),
    "the first that matches": (
        [{"tools": "git.git_log", "effect": "deny"}, {"tools": "*", "effect": "allow"}],
        ToolFacts(),
        ("Deny", "rule"),
    ),
    "a rule that does not match is passed": (
        [{"tools": "hub.*", "effect": "deny"}, {"tools": ["x.y", "git.*"], "effect": "allow"}],
        ToolFacts(),
        ("Allow", "rule"),
    ),
    "an argument that fits": (
        [{"tools": "*", "arguments": {"/repo_path": {"in": [".", "x"]}}, "effect": "allow"}],
        ToolFacts(),
        ("Allow", "rule"),
    ),
    "an argument that does not": (
        [{"tools": "*", "arguments": {"/repo_path": {"in": ["x"]}}, "effect": "allow"}],
        ToolFacts(),
        ("Ask", "rule"),
    ),
    "a hint that is believed": (
        [{"tools": "*", "annotations": {"destructive": False}, "effect": "allow"}],
        ToolFacts(destructive=False),
        ("Allow", "rule"),
    ),
    "a hint that is not given": (
        [{"tools": "*", "annotations": {"destructive": False}, "effect": "allow"}],
        READ,
        ("Ask", "rule"),
    ),
    "a hint that is not given, in a rule that denies": (
        [{"tools": "*", "annotations": {"destructive": True}, "effect": "deny"}, {"tools": "*", "effect": "allow"}],
        ToolFacts(),
        ("Deny", "rule"),
    ),
    "a hint that is not given, in a rule that asks": (
        [{"tools": "*", "annotations": {"destructive": True}, "effect": "ask"}, {"tools": "*", "effect": "allow"}],
        ToolFacts(),
        ("Ask", "rule"),
    ),
    "a hint that is not given, in a rule that asks before one that denies": (
        [{"tools": "*", "annotations": {"read_only": True}, "effect": "ask"}, {"tools": "*", "effect": "deny"}],
        ToolFacts(),
        ("Deny", "rule"),
    ),
    "a hint that says otherwise, in a rule that denies": (
        [
            {"tools": "*", "annotations": {"destructive": True, "idempotent": False}, "effect": "deny"},
            {"tools": "*", "effect": "allow"},
        ],
        ToolFacts(destructive=False),
        ("Allow", "rule"),
    ),
    "a hint that is not given, and an argument that does not fit": (
        [
            {
                "tools": "*",
                "annotations": {"destructive": True},
                "arguments": {"/repo_path": {"equals": "/"}},
                "effect": "deny",
            },
            {"tools": "*", "effect": "allow"},
        ],
        ToolFacts(),
        ("Allow", "rule"),
    ),
    "the principal": ([{"tools": "*", "principals": "ann*", "effect": "allow"}], ToolFacts(), ("Allow", "rule")),
    "another principal": ([{"tools": "*", "principals": "bob", "effect": "allow"}], ToolFacts(), ("Ask", "rule")),
    "the session": ([{"tools": "*", "sessions": "s1", "effect": "allow"}], ToolFacts(), ("Allow", "rule")),
    "another session": ([{"tools": "*", "sessions": ["s2"], "effect": "allow"}], ToolFacts(), ("Ask", "rule")),
    "the script": (
        [{"tools": "*", "scripts": f"sha256:{'a' * 64}", "effect": "allow"}],
        ToolFacts(),
        ("Allow", "rule"),
    ),
    "another script": (
        [{"tools": "*", "scripts": f"sha256:{'b' * 64}", "effect": "allow"}],
        ToolFacts(),
        ("Ask", "rule"),
    ),
    "another definition": (
        [{"tools": "*", "digests": f"sha256:{'b' * 64}", "effect": "allow"}],
        ToolFacts(),
        ("Ask", "rule"),
    ),
}


@pytest.mark.parametrize(("rules", "facts", "decision"), RULES.values(), ids=RULES.keys())
def test_the_first_rule_that_matches_decides(rules, facts, decision):
    caller = Caller("s1", "anna", "r", f"sha256:{'a' * 64}")
    call = PendingCall("git", "git_log", "sha256:1", {"repo_path": "."}, facts, caller)
    assert said(decide(call, policy={} if rules is None else {"rules": rules})) == decision


SPELLINGS = {
    "as it is": "secrets/key",
    "here": "./secrets/key",
    "back and forth": "notes/../secrets/key",
    "an empty segment": "secrets//key",
    "encoded": "%73ecrets/key",
    "with what URLs leave out": "sec\trets/k\ney",
    "encoded twice": "%2573ecrets/key",
    "encoded many times": f"%{30 * '25'}73ecrets/key",
    "full width": "\uff53ecrets/key",
    "everything together": "%2553ecre\uff54s. //KEY",
    "in capitals": "Secrets/KEY",
    "dots and spaces at the end": "secrets. ./key.",
    "a backslash": "secrets\\key",
    "no path": "secrets" + 40_000 * "/" + "key",
}


@pytest.mark.parametrize("path", SPELLINGS.values(), ids=SPELLINGS.keys())
@pytest.mark.parametrize(("effect", "decision"), [("deny", "Deny"), ("ask", "Ask")])
def test_no_spelling_of_a_path_gets_round_a_rule_that_does_not_allow_it(effect, decision, path):
    rules = [
        {"tools": "files.*", "arguments": {"/path": {"path": "secrets/*"}}, "effect": effect},
        {"tools": "files.*", "effect": "allow"},
    ]
    call, other = (PendingCall("files", "read", "sha256:1", {"path": one}) for one in (path, "notes/key"))
    assert type(decide(call, policy={"rules": rules})).__name__ == decision
    assert isinstance(decide(other, policy={"rules": rules}), Allow)


@pytest.mark.parametrize("path", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_no_spelling_of_a_path_gets_round_a_denial(path):
    denials = [Denial("files.*", arguments=Predicate.parse({"/path": {"path": "secrets/*"}}))]
    call, other = (PendingCall("files", "read", "sha256:1", {"path": one}) for one in (path, "notes/key"))
    assert isinstance(decide(call, grants=[Grant("files.*")], denials=denials), Deny)
    assert isinstance(decide(other, grants=[Grant("files.*")], denials=denials), Allow)


@pytest.mark.parametrize("path", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_no_spelling_of_a_path_in_a_list_gets_round_a_rule_that_denies_it(path):
    rules = [
        {"tools": "files.*", "arguments": {"/paths": {"any": {"path": "secrets/*"}}}, "effect": "deny"},
        {"tools": "files.*", "effect": "allow"},
    ]
    lists = (["notes/key", path], ["notes/key"])
    call, other = (PendingCall("files", "read", "sha256:1", {"paths": paths}) for paths in lists)
    assert isinstance(decide(call, policy={"rules": rules}), Deny)
    assert isinstance(decide(other, policy={"rules": rules}), Allow)


def test_a_path_in_doubt_is_not_asked_for_where_it_would_be_denied():
    rules = [
        {"tools": "files.*", "arguments": {"/path": {"path": "notes/*"}}, "effect": "ask"},
        {"tools": "files.*", "effect": "deny"},
    ]
    asked, denied = (PendingCall("files", "read", "sha256:1", {"path": one}) for one in ("notes/a", "notes/../a"))
    assert isinstance(decide(asked, policy={"rules": rules}), Ask)
    assert isinstance(decide(denied, policy={"rules": rules}), Deny)


def test_a_refusal_by_a_rule_names_it_and_its_reason():
    rules = [{"tools": "x.*", "effect": "allow"}, {"name": "frozen", "tools": "*", "effect": "deny", "reason": "audit"}]
    denied = decide(grants=[Grant("*")], policy={"rules": rules})
    assert isinstance(denied, Deny)
    assert denied.reason == "git.git_log was refused by rule 2 'frozen' of the policy: audit."


def test_a_denial_is_stronger_than_a_rule_that_allows():
    rules = [{"tools": "*", "effect": "allow"}]
    assert said(decide(policy={"rules": rules}, denials=[Denial("git.*")])) == ("Deny", "denial")


def test_a_quota_that_is_used_up_refuses_what_is_allowed():
    denied = decide(grants=[Grant("*")], used_up="the quota 1 (3 calls in a run) is used up")
    assert isinstance(denied, Deny)
    assert denied.reason == "git.git_log was refused: the quota 1 (3 calls in a run) is used up."


def received(*labels, server="notes", tool="read", value="some text") -> FlowState:
    flow = FlowState()
    flow.receive(PendingCall(server, tool, "sha256:1", {}, ToolFacts(labels=frozenset(labels))), value)
    return flow


SEND = PendingCall("mail", "send", "sha256:1", {"body": "x"}, ToolFacts(labels=frozenset({"egress"})))

FLOWS = {
    "nothing received": ((), [Grant("*")], ("Allow", "grant")),
    "private, then egress": (("private",), [Grant("*")], ("Ask", "flow")),
    "untrusted, then egress": (("untrusted",), [], ("Ask", "flow")),
    "a label without a rule": (("own",), [Grant("*")], ("Allow", "grant")),
    "a grant that names the label": (("private",), [Grant("*", after=frozenset({"private"}))], ("Allow", "grant")),
    "a grant that names one of two": (
        ("private", "untrusted"),
        [Grant("*", after=frozenset({"private"}))],
        ("Ask", "flow"),
    ),
}


@pytest.mark.parametrize(("labels", "grants", "decision"), FLOWS.values(), ids=FLOWS.keys())
def test_what_was_received_asks_before_it_may_leave(labels, grants, decision):
    assert said(decide(SEND, grants=grants, flow=received(*labels))) == decision


def test_a_flow_asks_in_spite_of_a_rule_that_allows():
    rules = [{"tools": "*", "effect": "allow"}]
    asked = decide(SEND, policy={"rules": rules}, flow=received("private"))
    assert isinstance(asked, Ask)
    assert [str(use) for use in asked.flows] == ["after private from notes.read (1 call), to egress"]


def test_a_flow_that_is_denied_is_refused_whatever_was_granted():
    flows = [{"from": "private", "to": "egress", "effect": "deny", "reason": "no leaks"}]
    grants = [Grant("*", after=frozenset({"private"}))]
    denied = decide(SEND, grants=grants, policy={"flows": flows}, flow=received("private"))
    assert isinstance(denied, Deny)
    assert denied.reason == (
        "mail.send was refused by a flow rule of the policy, after private from notes.read (1 call), to egress: no "
        "leaks."
    )


def test_what_a_tool_answers_is_no_input_to_the_same_tool():
    flow = received("private", server="mail", tool="send")
    assert said(decide(SEND, grants=[Grant("*")], flow=flow)) == ("Allow", "grant")
    flow = received("private", server="mail", tool="read")
    assert said(decide(SEND, grants=[Grant("*")], flow=flow)) == ("Ask", "flow")


def test_copied_text_is_a_flow_of_its_own():
    flows = [{"from": "copied", "to": "egress", "effect": "deny"}]
    flow = received(value="the launch code of the moon rocket is 0000")
    sending = PendingCall("mail", "send", "d", {"body": "Nothing of what was read is in here."}, SEND.facts)
    assert said(decide(sending, policy={"flows": flows}, flow=flow, grants=[Grant("*")])) == ("Allow", "grant")
    sending = PendingCall("mail", "send", "d", {"body": "so THE LAUNCH CODE of the moon-rocket is…"}, SEND.facts)
    assert said(decide(sending, policy={"flows": flows}, flow=flow, grants=[Grant("*")])) == ("Deny", "flow")


# -- what holds for all of them

patterns = st.sampled_from(["*", "git.*", "git.git_log", "*.git_log", "hub.*", "g*.x", "mail.*"])
predicates = st.sampled_from([None, {"/a": {"equals": 1}}, {"/a": {"min": 0, "max": 5}}, {"/b": {"present": False}}])
labels = st.frozensets(st.sampled_from(["private", "untrusted", "own"]))
grants_strategy = st.lists(
    st.builds(
        lambda pattern, tests, calls, after: Grant(
            pattern, arguments=Predicate.parse(tests) if tests else None, calls=calls, after=after
        ),
        patterns,
        predicates,
        st.sampled_from([None, 1, 3]),
        labels,
    ),
    max_size=6,
)
denials_strategy = st.lists(st.builds(Denial, patterns, st.sampled_from(["", "no"])), max_size=3)
rules_strategy = st.lists(
    st.builds(
        lambda pattern, tests, effect: Rule.model_validate(
            {"tools": pattern, "arguments": tests or {}, "effect": effect}
        ),
        patterns,
        predicates,
        st.sampled_from(["allow", "ask", "deny"]),
    ),
    max_size=6,
)
flows_strategy = st.lists(
    st.builds(
        lambda source, to, effect: Flow.model_validate({"from": source, "to": to, "effect": effect}),
        st.sampled_from(["private", "untrusted", "own"]),
        st.sampled_from(["egress", "own"]),
        st.sampled_from(["allow", "ask", "deny"]),
    ),
    max_size=4,
)
calls_strategy = st.builds(
    lambda name, arguments, tool_labels: PendingCall(name[0], name[1], "d", arguments, ToolFacts(labels=tool_labels)),
    st.sampled_from([("git", "git_log"), ("hub", "x"), ("mail", "send")]),
    st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from([1, 3, 9, True, "x"])),
    st.frozensets(st.sampled_from(["egress", "own"])),
)


everything = st.fixed_dictionaries(
    {"grants": grants_strategy, "denials": denials_strategy, "rules": rules_strategy, "flows": flows_strategy}
)


def outcome(call, given_leave, state):
    policy = PolicyConfig(rules=tuple(given_leave["rules"]), flows=tuple(given_leave["flows"]))
    book = GrantBook.of(given_leave["grants"], given_leave["denials"])
    return authorize(call, policy=Policy(policy), grants=book, flow=state, now=NOW)


def with_one_more(items, item, data):
    place = data.draw(st.integers(0, len(items)))
    return [*items[:place], item, *items[place:]]


@given(calls_strategy, everything, labels, st.data())
def test_less_leave_or_more_denials_never_allow_more(call, leave, got, data):
    state = received(*got)
    before = outcome(call, leave, state)
    no_rule = Rule.model_validate({"tools": data.draw(patterns), "effect": "deny"})
    no_flow = Flow.model_validate({"from": "private", "to": "egress", "effect": "deny"})
    for change in (
        {"grants": [grant for grant in leave["grants"] if data.draw(st.booleans())]},
        {"denials": [*leave["denials"], Denial(data.draw(patterns))]},
        {"rules": with_one_more(leave["rules"], no_rule, data)},
        {"flows": with_one_more(leave["flows"], no_flow, data)},
    ):
        after = outcome(call, leave | change, state)
        assert not isinstance(after, Allow) or isinstance(before, Allow)


@given(calls_strategy, everything, labels, labels)
def test_having_received_more_never_allows_more(call, leave, got, more):
    before = outcome(call, leave, received(*got))
    after = outcome(call, leave, received(*got, *more))
    assert not isinstance(after, Allow) or isinstance(before, Allow)


@given(calls_strategy, everything, st.randoms())
def test_the_order_of_grants_and_denials_does_not_matter(call, leave, random):
    shuffled = {key: random.sample(leave[key], len(leave[key])) for key in ("grants", "denials")}
    one = outcome(call, leave, FlowState())
    other = outcome(call, leave | shuffled, FlowState())
    assert said(one) == said(other)
    assert not isinstance(one, Deny) or one == other


@given(calls_strategy, grants_strategy, rules_strategy)
def test_deciding_uses_nothing_up(call, grants, rules):
    book = GrantBook.of(grants)
    policy = Policy(PolicyConfig(rules=tuple(rules)))
    one = authorize(call, policy=policy, grants=book, flow=FlowState(), now=NOW)
    assert said(one) == said(authorize(call, policy=policy, grants=book, flow=FlowState(), now=NOW))
    assert [held.calls_left for held in book.held] == [held.grant.calls or float("inf") for held in book.held]
