"""Compiles a test on one argument into a function of its value.

Above: predicates.py, which has the words and puts the functions together. Below: patterns.py. Nothing is converted: `1`
is not `"1"`, and `true` is not `1`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from broker.authorization.patterns import matcher
from codegen.normal_form import normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from broker.authorization.predicates import ArgumentTest

    Check: TypeAlias = Callable[[Any], bool]

ABSENT: Any = object()
"""The value of an argument that is not given."""

MAX_PATH = 32_767
"""Characters of the longest path that any system takes (Windows, with `\\\\?\\` in front); a longer text is none."""

_MAX_READINGS = 6
_NOT_IN_URLS = dict.fromkeys(map(ord, "\t\n\r"))
"""Readers of URLs leave these out wherever they stand, and what is in `_BLANK` at both ends."""
_BLANK = "".join(map(chr, range(ord(" ") + 1)))
_ENDS_SEGMENT = re.compile(r"[;?#]")
_PATH_PIECES = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


def compile_test(test: ArgumentTest, *, in_doubt: bool = False) -> Check:
    """Return a test as one function of the value, which is `ABSENT` where there is none.

    `in_doubt`, a path passes that only some servers read as one that does.
    """
    checks: list[Check] = []
    if test.present is not None:
        checks.append(_is_present if test.present else _is_absent)
    if "equals" in test.model_fields_set:
        checks.append(_equality(test.equals))
    if test.one_of is not None:
        checks.append(_any_of([_equality(value) for value in test.one_of]))
    if test.glob is not None:
        checks.append(_string(matcher(test.glob)))
    if test.path is not None:
        checks.append(_path(test.path, in_doubt=in_doubt))
    if test.min is not None or test.max is not None:
        checks.append(_range(test.min, test.max))
    if test.each is not None:
        checks.append(_values(all, compile_test(test.each, in_doubt=in_doubt)))
    if test.some is not None:
        checks.append(_values(any, compile_test(test.some, in_doubt=in_doubt)))
    if test.keys is not None:
        checks.append(_keys(frozenset(test.keys)))
    return all_of(checks)


def json_equal(left: Any, right: Any) -> bool:
    """Compare as JSON: `True` and `1` are equal in Python but not here, `1` and `1.0` are."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(json_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(json_equal, left, right))
    return bool(left == right)


def all_of(checks: list[Check]) -> Check:
    """Return what holds where all of these do."""
    return checks[0] if len(checks) == 1 else lambda value: all(check(value) for check in checks)


def _is_present(value: Any) -> bool:
    return value is not ABSENT


def _is_absent(value: Any) -> bool:
    return value is ABSENT


def _equality(expected: Any) -> Check:
    if isinstance(expected, str):
        return lambda value: type(value) is str and value == expected
    return lambda value: json_equal(value, expected)


def _any_of(checks: list[Check]) -> Check:
    return lambda value: any(check(value) for check in checks)


def _string(matches: Callable[[str], object]) -> Check:
    return lambda value: isinstance(value, str) and bool(matches(value))


def _path(glob: str, *, in_doubt: bool) -> Check:
    """Return a test by path: `**` crosses segments, `*` and `?` do not; what could lead elsewhere matches nothing.

    `in_doubt` it matches, and so does what some servers read as a path that does, on some systems whatever its case.
    """
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415  # publishes no types; few policies need it

    pieces = (_PATH_PIECES.get(piece) or re.escape(piece) for piece in re.split(r"(\*\*|\*|\?)", glob))
    # Several wildcards in one expression: linear time for any path.
    expression = re2.compile(f"(?s{'i' if in_doubt else ''}){''.join(pieces)}")

    def matches(path: str) -> bool:
        return expression.fullmatch(path.encode("utf-8", "replace")) is not None

    def check(value: Any) -> bool:
        if not isinstance(value, str):
            return False
        readings = _readings(value) if len(value) <= MAX_PATH else ()
        if not readings or len(readings) > _MAX_READINGS or _lead_elsewhere(value, readings):
            return in_doubt
        if in_doubt:
            return any(matches(reading) or matches(_tidied(reading)) for reading in readings)
        return matches(value)

    return check


def _readings(path: str) -> Sequence[str]:
    """Return what servers may read a path as.

    Some normalise Unicode, and decode percent signs, once or more often; in a URL, tabs and ends of lines do not count.
    """
    reading = normalised("NFKC", path).translate(_NOT_IN_URLS)
    readings = [path, reading]
    while len(readings) <= _MAX_READINGS and "%" in reading and (decoded := unquote(reading)) != reading:
        reading = normalised("NFKC", decoded).translate(_NOT_IN_URLS)
        readings.append(reading)
    return readings


def _lead_elsewhere(path: str, readings: Sequence[str]) -> bool:
    """Tell whether a path leads elsewhere than it looks, by one of its readings."""
    return any(
        reading.count("/") != path.count("/") or "\\" in reading or "\0" in reading or _has_dots(reading)
        for reading in readings
    )


def _tidied(path: str) -> str:
    """Return a path without empty segments, and without the dots and spaces at their ends that Windows leaves out."""
    segments = (segment.rstrip(". ") for segment in path.split("/"))
    return ("/" if path.startswith("/") else "") + "/".join(filter(None, segments))


def _has_dots(path: str) -> bool:
    """Tell whether a segment is `.` or `..`.

    Blanks beside it do not count, nor what URLs have after the segments: parameters, a query, a fragment.
    """
    return "." in path and any(
        _ENDS_SEGMENT.split(one, maxsplit=1)[0].strip(_BLANK) in {".", ".."} for one in path.split("/")
    )


def _range(least: float | None, most: float | None) -> Check:
    def check(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        # Written so that NaN fails.
        return (least is None or value >= least) and (most is None or value <= most)

    return check


def _keys(known: frozenset[str]) -> Check:
    return lambda value: isinstance(value, dict) and value.keys() <= known


def _values(enough: Callable[[Iterable[object]], bool], check: Check) -> Check:
    def check_values(value: Any) -> bool:
        if isinstance(value, dict):
            value = list(value.values())
        return isinstance(value, list) and enough(map(check, value))

    return check_values
