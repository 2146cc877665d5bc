"""The values of a JSON text are counted without those that its strings seem to hold, and in little memory."""

from __future__ import annotations

import json
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from broker.value_count import values_in

TEXTS = st.text(st.sampled_from('",[{\\:a\u20ac'), max_size=8)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20
)


def counted(value):
    """Commas, lists and objects, found by decoding."""
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(len(value) - 1, 0) + sum(map(counted, inner))


@given(VALUES, st.booleans())
def test_strings_count_for_nothing_whatever_they_hold(value, ensure_ascii):
    assert values_in(json.dumps(value, ensure_ascii=ensure_ascii).encode(), 0) == counted(value)


def test_a_text_of_a_million_strings_takes_little_more_memory_than_itself():
    text = b'{"a":"b"},' * 500_000
    tracemalloc.start()
    assert values_in(text, 0) == 1_000_000
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3 * len(text)
