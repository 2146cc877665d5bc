"""What the values of an argument have in common, as a test: what "calls like these" allows of it.

Above: questions.py suggests it, question_text.py shows more values where there is nothing. Below: predicates.py. Such a
test is never wider than what a person sees: a folder or a beginning that all values share, the range between numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.authorization.argument_checks import compile_test
from broker.authorization.patterns import has_wildcards
from broker.authorization.predicates import ArgumentTest
from codegen.tool_spec import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LEAST_PREFIX = 3
_LEADS_NOWHERE = frozenset({"", ".", "..", "~"})


def common_test(values: Sequence[Any]) -> dict[str, Any] | None:
    """Return a test that all values pass, and similar ones would; None if they have nothing in common."""
    for test in _candidates(values):
        if all(map(compile_test(ArgumentTest.model_validate(test)), values)):
            return test
    return None


def distinct(values: Sequence[Any]) -> list[Any]:
    """Return the values without those that equal an earlier one."""
    found: dict[str, Any] = {}
    for value in values:
        found.setdefault(canonical_json(value), value)
    return list(found.values())


def _candidates(values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield tests that the values may pass, the narrowest first.

    Texts are tested as paths: by a glob, another one with the same beginning could lead anywhere.
    """
    if all(isinstance(value, str) for value in values):
        prefix = _prefix(min(values), max(values))
        if len(prefix) < _LEAST_PREFIX or has_wildcards(prefix):
            return
        if folder := _folder(prefix):
            yield {"path": f"{folder}*"}
            yield {"path": f"{folder}**"}
        else:
            yield {"path": f"{prefix}*"}
    elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        yield {"min": min(values), "max": max(values)}


def _prefix(one: str, other: str) -> str:
    length = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]


def _folder(prefix: str) -> str:
    """Return the folder that a beginning is in, or nothing where that is a root, a scheme or above where one is."""
    folder = prefix[: prefix.rfind("/") + 1]
    names = (name for name in folder.split("/") if name not in _LEADS_NOWHERE and not name.endswith(":"))
    return folder if next(names, "") else ""
