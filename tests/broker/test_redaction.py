"""Secrets in what leaves: as they are, encoded, and in pieces."""

from __future__ import annotations

import base64
import html
import itertools
import json
import math
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.redacted_places import MARK
from broker.redaction import MAX_LEARNT, Redactor

SECRET = "s3cr3t/Key+with=two words"  # noqa: S105  # what must not be seen
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
    "percent, some characters": "s3c%723t/Ke%79+with=two word%73",
    "percent, as in a form": quote_plus(SECRET),
    "hexadecimal": SECRET.encode().hex(),
    "in JSON": json.dumps(SECRET),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_secret_is_replaced_in_every_form(form):
    assert REDACT(f"before {form} after").replace('"', "") == "before [redacted] after"


@pytest.mark.parametrize("quotes", [True, False])
def test_a_secret_in_a_page_is_found(quotes):
    secret = """pass&word's "<best>" """  # noqa: S105  # what must not be seen
    assert Redactor([secret])(f"<p>{html.escape(secret, quote=quotes)}</p>") == "<p>[redacted]</p>"


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
    redact = Redactor(["4711081500", "0000", "9" * 2_000])
    found = [4711081500, -4711081500, 4711081500.0, -4711081500.0]
    assert redact.value(found) == ["[redacted]"] * 4
    others: list[object] = [4711081501, 4711081500.5, 0, True, math.inf, 10**5000, int("9" * 2_000)]
    assert redact.value({"pin": 4711081500, "other": others}) == {"pin": "[redacted]", "other": others}


def test_a_text_of_escapes_is_read_once_for_a_long_secret():
    stream = Redactor(["eyJ" + "h7b2c" * 2_000]).stream()
    assert stream.add("%41" * 20_000) + stream.end() == "%41" * 20_000  # decoded anew from each place: an hour


def test_a_secret_that_stands_in_a_text_many_times_is_looked_up_in_one_walk():
    redact = Redactor(["schlüssel-wort"])
    assert redact("schlüssel-wort " * 100_000 + "%41") == f"{MARK} " * 100_000 + "%41"  # each from the start: an hour


def test_a_long_secret_in_pieces_is_found_behind_escapes_that_are_not_of_it():
    secret = "eyJ" + "h7b2c" * 200
    stream = Redactor([secret]).stream()
    told = stream.add("%41%4" + "%65yJ") + stream.add("h7b2c" * 100) + stream.add("%687b2c" * 100) + stream.end()
    assert told == f"%41%4{MARK}"


@given(
    st.data(), st.text("aäß€😀/", min_size=4, max_size=12), st.text("äx%1€", max_size=9), st.text("ä%y4", max_size=9)
)
def test_a_secret_of_which_any_part_is_encoded_is_found_whole_and_in_pieces(data, secret, before, after):
    written = "".join(data.draw(st.sampled_from([character, percent(character)])) for character in secret)
    text = f"{before}.~{written}~.{after}"
    redact = Redactor([f"~{secret}~"])
    assert redact(text) == f"{before}.{MARK}.{after}"
    stream = redact.stream()
    assert "".join([*map(stream.add, text), stream.end()]) == f"{before}.{MARK}.{after}"


@pytest.mark.parametrize(
    "written", ["pass%41word%2Fx", "p%61ss%41word%2Fx", "pass%2541word%252Fx", "p%61ss%2541word%252Fx"]
)
def test_a_secret_that_is_percent_encoded_itself_is_found_when_it_is_encoded_once_more(written):
    assert Redactor(["pass%41word%2Fx"])(f"see {written}.") == f"see {MARK}."


NOT_UTF_8 = "pass\udcff-word"
HALF_A_PAIR = "pass\ud800-word"


@pytest.mark.parametrize(
    ("secret", "written"),
    [
        (NOT_UTF_8, NOT_UTF_8),
        (NOT_UTF_8, "pass\N{REPLACEMENT CHARACTER}-word"),
        (NOT_UTF_8, "pass%FF-w%6Frd"),
        (NOT_UTF_8, "70617373ff2d776f7264"),
        (NOT_UTF_8, base64.b64encode(b"pass\xff-word").decode()),
        (HALF_A_PAIR, HALF_A_PAIR),
        (HALF_A_PAIR, "pass\ud800-w%6Frd"),
    ],
)
def test_a_secret_that_is_no_text_of_utf_8_is_found(secret, written):
    assert Redactor([secret])(f"see {written} .").startswith(f"see {MARK}")
    assert Redactor([secret])("see pass-word") == "see pass-word"


def test_what_a_short_secret_is_when_decoded_is_left_in_other_texts():
    assert Redactor(["%20"])("5 % of all, and a%20b") == f"5 % of all, and a{MARK}b"


def test_secrets_that_overlap_leave_nothing_of_either():
    assert Redactor(["one-secret-more", "more-secrets"])("<one-secret-more-secrets>") == f"<{MARK}>"


def test_of_the_secrets_that_a_source_tells_the_latest_are_kept_out():
    redact = Redactor([SECRET])
    learn, learn_elsewhere = redact.learner(), redact.learner()
    learn_elsewhere("token-of-another-server")
    tokens = [f"token-number-{number:05}" for number in range(1_000)]
    for token in tokens:
        learn(token)
        learn(tokens[0])  # the refresh token, told again with each access token
    kept = {tokens[0], *tokens[-MAX_LEARNT + 1 :]}
    assert [token for token in tokens if redact(token) == MARK] == [token for token in tokens if token in kept]
    assert redact(f"{SECRET} token-of-another-server") == f"{MARK} {MARK}"


def test_the_longest_tokens_are_learnt_and_looked_for_without_an_expression(monkeypatch):
    """An expression for one of them takes more than a second to be compiled, on the event loop."""
    redact = Redactor([SECRET])
    learn = redact.learner()
    compiled = []
    monkeypatch.setattr("re.compile", lambda *given: compiled.append(given))
    tokens = [f"{number:04}" + "eyJhbGciOi" * 1_638 for number in range(MAX_LEARNT)]
    for token in tokens:
        learn(token)
    stream = redact.stream()
    for token in tokens:
        assert redact(f"%41{token}") == f"%41{MARK}"
        assert stream.add(f"[{token}]\n") == f"[{MARK}]\n"
    assert not compiled
