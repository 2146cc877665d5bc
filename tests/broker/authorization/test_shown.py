"""What a person sees of names and texts that others wrote: nothing hidden, nothing that acts."""

from __future__ import annotations

import pytest

from broker.authorization.shown import shown_ends, shown_name, shown_text

HIDDEN = {
    "zero width space": "\u200b",
    "direction": "\u202e",
    "isolate": "\u2066",
    "escape": "\x1b[2J",
    "newline": "\n",
    "line separator": "\u2028",
    "tag": "\U000e0041",
    "combining mark": "\u0336",
    "variation selector": "\ufe0f",
    "hangul filler": "\u3164",
    "halfwidth filler": "\uffa0",
    "blank braille": "\u2800",
    "no-break space": "\u00a0",
    "private use": "\ue000",
    "half of a pair": "\ud800",
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_what_hides_or_acts_is_shown_as_an_escape(kind):
    hidden = HIDDEN[kind]
    for shown in (shown_text(f"a{hidden}b", 80), shown_name(f"a{hidden}b")):
        assert hidden[0] not in shown
        assert "\\" in shown
        assert shown.isprintable()


def test_letters_of_any_script_are_shown_in_texts_and_escaped_in_names():
    assert (
        shown_text("caf\u00e9 \u0442\u0435\u0441\u0442 \u65e5\u672c", 80)
        == "caf\u00e9 \u0442\u0435\u0441\u0442 \u65e5\u672c"
    )
    assert shown_name("v\u0430ult") == "v\\u0430ult"


def test_long_texts_are_cut_and_say_so():
    assert shown_text("x" * 1_000, 20) == "x" * 19 + "…"
    assert len(shown_text("\u202e" * 1_000, 20)) == 20


def test_of_what_is_too_long_both_ends_are_shown():
    command = "ls" + " " * 500 + "; rm -rf /"
    shown = shown_ends(command, 60)
    assert shown == f"ls{' ' * 38} [… 512 characters …] {' ' * 10}; rm -rf /"
    assert shown_ends("ls", 60) == "ls"
    hidden = shown_ends("a" * 100 + "\u202e", 60)
    assert (hidden[-6:], len(hidden)) == ("\\u202e", 60 + len(" [… 101 characters …] "))
