"""How a definition differs from the one before, however much of it there is."""

from __future__ import annotations

import random

from broker.authorization.definitions import Definitions, difference
from codegen import ToolAnnotations, ToolSpec


def spec(numbers: list[int], description: str = "Same") -> ToolSpec:
    schema = {"type": "object", "enum": numbers}
    return ToolSpec("s", "t", None, description, schema, None, ToolAnnotations(None, None, None, None))


def test_definitions_of_many_lines_that_are_alike_are_compared_in_part():
    numbers = random.Random(1)  # noqa: S311  # the same numbers each time
    before, after = ([numbers.randrange(120) for _ in range(300_000)] for _ in range(2))
    lines = difference(spec(before), spec(after))  # of all lines: a day
    assert len(lines) == 61
    assert lines[-1].startswith("… and at least ")


def test_a_change_behind_many_equal_lines_is_shown():
    same = list(range(5_000))
    assert difference(spec([*same, 1]), spec([*same, 2])) == ("-   1", "+   2")
    assert difference(spec(same, "Old"), spec(same, "New"))[:1] == ('- "description": "Old",',)
    assert difference(spec(same), spec(same)) == ()


def test_a_moment_keeps_the_definition_that_stood_then():
    definitions, old, new = Definitions(), spec([1]), spec([2])
    unseen = definitions.sequence
    definitions.see(old)
    at_old = definitions.sequence
    definitions.see(new)
    at_new = definitions.sequence
    assert [definitions.pinned("s.t", moment) for moment in (unseen, at_old, at_new)] == [
        old.digest,
        old.digest,
        new.digest,
    ]
    assert definitions.pinned("s.other", at_new) is None
