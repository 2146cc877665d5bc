"""What a client's model answers, with the fences of Markdown around it or without."""

from __future__ import annotations

import pytest

from broker.errors import UnfitResultError
from broker.server.sampling import json_of


@pytest.mark.parametrize(
    "text", ['{"a": 1}', '```json\n{"a": 1}\n```', '\n ``` \n\n{"a": 1}\n\n ```\n', '```\n{"a": 1}\n```']
)
def test_json_is_read_with_and_without_fences(text):
    assert json_of(text) == {"a": 1}


def test_an_answer_of_blank_lines_is_no_json_at_once():
    with pytest.raises(UnfitResultError):
        json_of("```" + "\n" * 1_000_000 + "x")  # by an expression with three repetitions: years
