"""A question finds the tool that answers it, also where neither shares a word with the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.search import KeywordIndex
from broker.search.questions import asked_for
from broker.search.words import stem
from tests.broker.search.tools import tool


@pytest.mark.parametrize(
    ("text", "nouns"),
    [
        ("How big is the house?", "size capacity storage"),
        ("Is the house up?", "status health availability"),
        ("Is the house up the hill nice, and what does it cost", "status health availability cost price"),
        ("is it a house of many rooms that was built long ago up there", ""),
        ("What is in it", "content list"),
        ("Somewhat in, whenever", ""),
        ("", ""),
    ],
)
def test_a_question_asks_for_what_answers_it(text: str, nouns: str) -> None:
    assert asked_for(text) == set(map(stem, nouns.split()))


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("Who changed the door?", "door_history"),
        ("Is the door up?", "door_status"),
        ("Where is the door?", "door_location"),
        ("How many doors are there?", "door_count"),
    ],
)
def test_a_question_finds_the_tool_that_answers_it(query: str, best: str) -> None:
    index = KeywordIndex()
    names = [f"door_{what}" for what in ("colour", "count", "history", "location", "status")]
    index.replace("doors", [tool("doors", name, "Of a door.") for name in names])
    assert index.rank(query)[0].spec.name == best


@given(st.text())
def test_no_text_is_too_odd(text: str) -> None:
    assert isinstance(asked_for(f"Is {text} up"), frozenset)
