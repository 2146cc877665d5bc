"""Normal forms take time in proportion to the text, and mean what Python means by a name."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.checking.script_text import words_of
from codegen.normal_form import MAX_TOGETHER, normalised, with_ascii_names
from codegen.schemas.references import References

MARKS = "a" + "\u0301" * 500_000 + "\u0323" * 500_000


@pytest.mark.parametrize("form", ["NFC", "NFKC", "NFKD"])
def test_a_million_marks_out_of_order_are_normalised(form):
    assert normalised(form, MARKS).startswith(normalised(form, "a\u0301")[0])  # by unicodedata alone: hours


def test_names_around_a_million_marks_are_still_found():
    assert {"files", "read_file"} <= words_of(f"# {MARKS}\n\uff46iles.read_file()")


def test_a_name_in_a_script_is_found_however_its_letters_are_written():
    every = "".join(map(chr, range(0x80, sys.maxunicode + 1)))
    names = [one for one in every if (form := unicodedata.normalize("NFKC", one)).isascii() and form.isidentifier()]
    assert [with_ascii_names(one) for one in names] == [unicodedata.normalize("NFKC", one) for one in names]
    assert len(names) > 1_000


@pytest.mark.parametrize("character", ["\ufdfa", "\ufdfb", "\ufdf3", "\u3316", "\u2177"])
def test_a_script_to_search_for_names_does_not_become_many_times_as_long(character):
    assert len(with_ascii_names(character * 1_000)) <= 4_000


@given(st.text(max_size=MAX_TOGETHER))
def test_texts_of_usual_length_have_the_form_of_the_standard(text):
    assert normalised("NFKC", text) == unicodedata.normalize("NFKC", text)


@given(st.text("/.%\\;\u2024\uff0f\u0338\u0301\u0323=é", min_size=2 * MAX_TOGETHER, max_size=6 * MAX_TOGETHER))
def test_long_texts_have_the_same_dots_and_slashes(text):
    whole = unicodedata.normalize("NFKC", text)
    assert [one for one in normalised("NFKC", text) if one in "/.%\\;"] == [one for one in whole if one in "/.%\\;"]


def test_an_endless_identifier_is_not_joined_with_all_that_are_inside():
    inside = {f"p{index}": {"$id": "b/", "$anchor": "x"} for index in range(20_000)}
    document = {"$id": "http://x/" + "a/" * 400_000, "properties": inside}
    assert References(document).target("#nowhere", document) is None  # joined with each, it takes an hour


def test_identifiers_and_anchors_of_usual_length_lead_somewhere():
    address = {"$id": "address", "$defs": {"zip": {"$anchor": "zip", "type": "string"}}}
    document = {"$id": "http://x/root", "$defs": {"address": address}}
    references = References(document)
    assert references.target("address", document) is address
    assert references.target("address#zip", document) == {"$anchor": "zip", "type": "string"}
