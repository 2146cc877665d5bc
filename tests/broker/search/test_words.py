"""Texts are cut into words, and the forms of a word have one stem."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.search.words import stems, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("VMs", ["vms"]),
        ("listVMsByID", ["list", "vms", "by", "id"]),
        ("the API's URLs", ["the", "apis", "urls"]),
        ("getHTTPSettings", ["get", "http", "settings"]),
        ("As", ["as"]),
    ],
)
def test_a_name_is_cut_at_its_capitals_and_an_abbreviation_keeps_its_plural(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    ("one", "many"),
    [("VM", "VMs"), ("pr", "prs"), ("db", "dbs"), ("VPC", "vpcs"), ("API", "APIs"), ("queue", "queues")],
)
def test_one_and_many_have_one_stem(one: str, many: str) -> None:
    assert stems(one) == stems(many)


@given(st.text())
def test_every_text_gives_words_in_lower_case(text: str) -> None:
    assert all(word and word == word.lower() for word in words(text))
