"""Secrets in what leaves: as they are, encoded, and in pieces."""

from __future__ import annotations

import base64
import itertools
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.redaction import MARK, Redactor

SECRET = "s3cr3t/Key+with=chars"  # noqa: S105  # what must not be seen
REDACT = Redactor([SECRET])


def percent(text: str, *, upper: bool = True) -> str:
    encoded = "".join(f"%{byte:02x}" for byte in text.encode())
    return encoded.upper() if upper else encoded


FORMS = {
    "as it is": SECRET,
    "percent": quote(SECRET, safe=""),
    "percent, slashes kept": quote(SECRET),
    "percent, every character": percent(SECRET),
    "percent, small letters": percent(SECRET, upper=False),
    "percent, some characters": "s3c%723t/Ke%79+with=char%73",
    "hexadecimal": SECRET.encode().hex(),
    "in JSON": json.dumps(SECRET),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_secret_is_replaced_in_every_form(form):
    assert REDACT(f"before {form} after").replace('"', "") == "before [redacted] after"


@given(st.binary(max_size=12), st.binary(max_size=12), st.booleans())
def test_a_secret_in_base64_is_found_wherever_it_stands(before, after, is_for_urls):
    encode = base64.urlsafe_b64encode if is_for_urls else base64.b64encode
    text = encode(before + SECRET.encode() + after).decode()
    assert "[redacted]" in REDACT(text)


@given(st.lists(st.integers(0, 60), max_size=6), st.sampled_from(sorted(FORMS.values())))
def test_a_secret_split_over_pieces_is_replaced(cuts, form):
    text = f"the key is {form} and that is all"
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    stream = REDACT.stream()
    given_out = [stream.add(text[start:end]) for start, end in itertools.pairwise(places)]
    assert "".join([*given_out, stream.end()]).replace('"', "") == "the key is [redacted] and that is all"


@given(st.lists(st.text(max_size=20), max_size=8))
def test_a_stream_without_secrets_passes_whole(pieces):
    stream = REDACT.stream()
    assert "".join([*(stream.add(piece) for piece in pieces), stream.end()]) == "".join(pieces)


def test_a_stream_holds_back_only_what_may_be_a_secret():
    stream = REDACT.stream()
    assert stream.add("nothing special\n") == "nothing special\n"
    assert stream.add("it is s3cr") == "it is "
    assert stream.add("umb.") == "s3crumb."


def test_values_are_redacted_at_any_depth_and_left_alone_otherwise():
    value = {"a": [1, {f"key {SECRET}": [f"<{SECRET}>"]}], "b": None}
    assert REDACT.value(value) == {"a": [1, {"key [redacted]": ["<[redacted]>"]}], "b": None}
    clean = {"a": ["nothing"]}
    assert REDACT.value(clean) is clean


def test_a_secret_that_begins_another_one_does_not_show_its_end():
    assert Redactor(["token-1", "token-12345678"])("token-12345678 token-1") == "[redacted] [redacted]"


def test_no_secrets_change_nothing():
    none = Redactor([""])
    assert none("any text") == "any text"
    assert none.stream().add("any text") == "any text"


def test_a_secret_of_digits_is_replaced_as_a_number_too():
    redact = Redactor(["4711081500"])
    assert redact.value({"pin": 4711081500, "other": [4711081501, True]}) == {
        "pin": "[redacted]",
        "other": [4711081501, True],
    }
    assert redact.value([10**5000]) == [10**5000]


def test_a_text_of_escapes_is_read_once_for_a_long_secret():
    stream = Redactor(["eyJ" + "h7b2c" * 2_000]).stream()
    assert stream.add("%41" * 20_000) + stream.end() == "%41" * 20_000  # decoded anew from each place: an hour


def test_a_long_secret_in_pieces_is_found_behind_escapes_that_are_not_of_it():
    secret = "eyJ" + "h7b2c" * 200
    stream = Redactor([secret]).stream()
    told = stream.add("%41%4" + "%65yJ") + stream.add("h7b2c" * 100) + stream.add("%687b2c" * 100) + stream.end()
    assert told == f"%41%4{MARK}"
