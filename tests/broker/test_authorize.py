from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.authorize import Allow, Ask, Denial, Deny, Grant, PendingCall, authorize
from broker.errors import PatternError

CALL = PendingCall("git", "git_log", "sha256:1", {"repo_path": "."})

DECISIONS = {
    "nothing granted": ([], [], Ask()),
    "exactly": (["git.git_log"], [], Allow(Grant("git.git_log"))),
    "all of a server": (["git.*"], [], Allow(Grant("git.*"))),
    "written out: all": (["*"], [], Allow(Grant("*"))),
    "one character": (["git.git_lo?"], [], Allow(Grant("git.git_lo?"))),
    "another tool": (["git.git_status"], [], Ask()),
    "another server": (["hub.git_log"], [], Ask()),
    "a longer name": (["git.git_log_all"], [], Ask()),
    "only the beginning": (["git.git_lo"], [], Ask()),
    "case counts": (["git.GIT_LOG"], [], Ask()),
    "homoglyph": (["g\u0456t.git_log"], [], Ask()),
    "denied": ([], ["git.*"], Deny("git.git_log was refused by the person who was asked.")),
    "denied beats granted": (
        ["git.git_log"],
        ["git.*"],
        Deny("git.git_log was refused by the person who was asked."),
    ),
    "another is denied": (["git.*"], ["git.git_push"], Allow(Grant("git.*"))),
}


@pytest.mark.parametrize(("grants", "denials", "decision"), DECISIONS.values(), ids=DECISIONS.keys())
def test_a_call_is_decided_by_the_patterns(grants, denials, decision):
    decided = authorize(CALL, grants=map(Grant, grants), denials=map(Denial, denials))
    assert decided == decision


def test_a_grant_with_a_digest_lapses_when_the_tool_changes():
    grant = Grant.parse("git.git_log@sha256:1")
    assert authorize(CALL, grants=[grant]) == Allow(grant)
    changed = PendingCall("git", "git_log", "sha256:2", {})
    assert authorize(changed, grants=[grant]) == Ask()


def test_the_words_of_a_denial_reach_the_script():
    denied = authorize(CALL, grants=[], denials=[Denial("git.*", "not today")])
    assert denied == Deny("git.git_log was refused: not today.")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "a pattern of tools is empty; '*' means every tool"),
        ("git", "the pattern 'git' can match no tool; write 'server.tool', or 'git.*' for a whole server"),
    ],
)
@pytest.mark.parametrize("kind", [Grant, Grant.parse, Denial])
def test_a_pattern_that_matches_nothing_is_refused(kind, pattern, message):
    with pytest.raises(PatternError) as caught:
        kind(pattern)
    assert str(caught.value) == message


PATTERNS = st.lists(st.sampled_from(["*", "git.*", "git.git_log", "*.git_log", "hub.*", "g*.x"]), max_size=5)


@given(PATTERNS, PATTERNS, st.randoms())
def test_fewer_grants_or_more_denials_never_allow_more(grants, denials, random):
    fewer = random.sample(grants, random.randint(0, len(grants)))
    more = [*denials, *random.sample(["*", "git.*", "x.y"], 1)]
    before = authorize(CALL, grants=map(Grant, grants), denials=map(Denial, denials))
    after = authorize(CALL, grants=map(Grant, fewer), denials=map(Denial, more))
    assert not isinstance(after, Allow) or isinstance(before, Allow)


@given(PATTERNS, PATTERNS, st.randoms())
def test_the_order_of_grants_and_denials_does_not_matter(grants, denials, random):
    shuffled = random.sample(grants, len(grants)), random.sample(denials, len(denials))
    assert authorize(CALL, grants=map(Grant, grants), denials=map(Denial, denials)) == authorize(
        CALL, grants=map(Grant, shuffled[0]), denials=map(Denial, shuffled[1])
    )
