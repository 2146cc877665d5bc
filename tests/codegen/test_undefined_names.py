"""What a script is told to write for a name of Python gives it that name."""

from __future__ import annotations

import re
import sys

import pytest

from codegen.undefined_names import _HOMES, _SHORT, python_hint

# Scripts have a newer Python than some hosts.
NEWER = {"batched"} if sys.version_info < (3, 12) else set()


@pytest.mark.parametrize("name", sorted({*_HOMES, *_SHORT, "json", "datetime"} - NEWER))
def test_what_is_said_to_be_written_gives_the_name(name: str) -> None:
    written = re.fullmatch(r"write `(.+)`", python_hint(name, f"{name}()"))
    assert written is not None
    given: dict[str, object] = {}
    exec(written[1], given)  # noqa: S102  # a text of this project
    assert name in given


@pytest.mark.parametrize(
    ("name", "script", "hint"),
    [
        ("datetime", "x = datetime.now()", "write `from datetime import datetime`"),
        ("datetime", "x = datetime.datetime.now()", "write `import datetime`"),
        ("date", "x = date.today()", "write `from datetime import date`"),
        ("date", "print(date)", ""),
        ("mean", "x.mean(1)\nprint(mean)", ""),
        ("copy", "copy.deepcopy(x)", "write `import copy`"),
        ("null", "x = null", "in Python it is `None`"),
        ("rows", "rows()", ""),
    ],
)
def test_a_name_is_told_as_it_is_used(name: str, script: str, hint: str) -> None:
    assert python_hint(name, script) == hint
