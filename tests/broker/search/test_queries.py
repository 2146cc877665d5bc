"""How queries are put into plain words, and what else may stand for those."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.search import KeywordIndex
from broker.search.phrases import plain
from broker.search.queries import read_query
from broker.search.synonyms import _ALIKE, _NEAR, alike_stems, near_stems
from broker.search.weights import Ranking
from tests.broker.search.tools import tool


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Get rid of the old key", "delete the old key"),
        ("take the watermark off my file", "remove the watermark my file"),
        ("turn the flag <flag_name> ON", "enable the flag <flag_name>"),
        ("Turn off the lamp", "disable the lamp"),
        ("Who am I?", "get current user myself whoami?"),
        ("Tell me how large it is", "what is how large it is"),
        ("Turn the chart into a table", "convert the chart a table"),
        ("give the house a new name", "rename the house a new"),
        ("Leave a note on the card", "add comment on the card"),
        ("Make the disk bigger", "resize the disk"),
        ("Read the letter aloud", "speak the letter"),
        ("take the train", "take the train"),
        ("take it. Then turn it off", "take it. Then disable it"),
        ("turn right at the first street, then go on", "turn right at the first street, then go on"),
        ("the setup of a project", "the setup of a project"),
    ],
)
def test_a_phrase_is_put_into_the_word_that_tools_use(said: str, meant: str) -> None:
    assert plain(said) == meant


@given(st.text())
def test_any_text_can_be_put_into_plain_words(text: str) -> None:
    assert isinstance(plain(text), str)
    assert isinstance(plain(f"Turn {text} off, \u017fet up {text}"), str)


@pytest.mark.parametrize(
    ("query", "given"),
    [
        ("Delete the queue 'orders' in <region_name>.", {"queue", "region", "name"}),
        ('Find the tickets of "Ann", whatever the others\' state', set()),
        ("Don't close what the user's script closes", set()),
    ],
)
def test_what_a_query_gives_values_for_is_read_beside_them(query: str, given: set[str]) -> None:
    assert read_query(query, Ranking()).given == given


NOTES = [
    tool("notes", "delete_note", "Delete a note."),
    tool("notes", "get_note", "Get a note."),
    tool("notes", "set_note_color", "Set the color of a note."),
    tool("notes", "create_notes_batch", "Create notes."),
    tool("notes", "create_note", "Create a note."),
    tool("notes", "list_repositories", "List repositories."),
    tool("notes", "list_folders", "List folders that belong to a directory."),
    tool("notes", "plan_get", "Generates a plan."),
    tool("notes", "plan_list", "Lists plans."),
    tool("notes", "read_policy", "Read a policy."),
    tool("notes", "test_availability", "Test availability."),
    tool("notes", "terraform_state", "State of terraform."),
    tool("notes", "wait_for", "Wait for a text."),
    tool("notes", "redis_flush", "Flush Redis."),
    tool("notes", "get_myself", "The profile of who calls."),
    tool("notes", "everything", "Really still nothing yet, because of everything."),
]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("Get rid of a note", "delete_note"),
        ("Set up a note", "create_note"),
        ("Throw the note away", "delete_note"),
        ("Add several notes at once", "create_notes_batch"),
        ("Add a note", "create_note"),
        ("my repos", "list_repositories"),
        ("Make a plan", "plan_get"),
        ("What guardrails do we have?", "read_policy"),
        ("Which caches are there?", "redis_flush"),
        ("uptime checks", "test_availability"),
        ("the tf state", "terraform_state"),
        ("Scrap the note", "delete_note"),
        ("Hold until a text is there", "wait_for"),
        ("Who am I?", "get_myself"),
        ("I really still need every policy because of everything", "read_policy"),
    ],
)
def test_a_query_in_other_words_finds_the_tool_it_means(query: str, best: str) -> None:
    index = KeywordIndex()
    index.replace("notes", NOTES)
    assert index.rank(query)[0].spec.name == best


def test_a_tool_that_says_a_phrase_itself_is_found_by_it() -> None:
    index = KeywordIndex()
    index.replace("bot", [tool("bot", "look_at", "Turn the head."), tool("bot", "jump", "Jump.")])
    assert [hit.spec.name for hit in index.rank("Look at the tower")] == ["look_at"]


def test_a_tool_that_says_a_thing_in_two_words_says_it_once() -> None:
    index = KeywordIndex()
    index.replace("one", [tool("one", "a", "folder directory dir"), tool("one", "b", "folder")])
    index.replace("two", [tool("two", f"t{number}", "other") for number in range(20)])
    twice, once = (next(hit.score for hit in index.rank("folder") if hit.spec.name == name) for name in "ab")
    assert twice <= once


def test_words_that_mean_the_very_same_are_among_those_that_mean_nearly_the_same() -> None:
    for word in ("repo", "delet", "vm", "nothing"):
        assert alike_stems(word) <= near_stems(word)
        assert word not in near_stems(word)
        assert all(word in near_stems(other) for other in near_stems(word))


def test_no_line_of_words_is_part_of_another() -> None:
    for lines in (_ALIKE, _NEAR):
        groups = [frozenset(line.split()) for line in lines.split("\n") if line.strip()]
        assert len(groups) > 100
        assert [group for group in groups if len(group) < 2 or any(group < other for other in groups)] == []
        assert len(set(groups)) == len(groups)


def test_a_word_of_the_query_counts_more_than_one_that_stands_for_it() -> None:
    terms = read_query("delete repo", Ranking()).whole
    assert terms.weights == {"delet": 1.0, "repo": 1.0}
    assert terms.same["remov"] == terms.same["repositori"] == Ranking().alike
    assert terms.stands_for["repositori"] == "repo"
