"""Scripts that are compiled without their tree mean what they mean with it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox import Limits
from sandbox.host_messages import encode_start
from sandbox.instance import Instance
from sandbox.terms import BEFORE_ANY_RUN

WITH_TREE = "\n# .run"
"""A comment that keeps a script from being compiled directly."""

LONG_COMMENT = "# " + 200 * "so that what follows is compiled by itself "

PIECES = [
    "x = 1",
    "x",
    "x, 2",
    "x += 1",
    "(y := 3)",
    "y",
    "print('out')",
    "'''text\n1\n'''",
    "s = '''\nx\n'''",
    "f'{1}'",
    "def f():\n    return 1\n",
    "f()",
    "import asyncio",
    "await asyncio.sleep(0, 'slept')",
    "[\n    1,\n    2,\n]",
    "z = (\n1\n)",
    "if True:\n    4\nelse:\n    5",
    "for i in range(2):\n    pass",
    "async def g():\n    return 7",
    "await g()",
    "a = 1; a",
    "*(1, 2), 3",
    "(lambda: 1)()",
    "return 8",
    "1 / 0",
    "x = = 1",
    "  indented",
    "# comment",
    "",
    "1 \\\n+ 1",
    "'\\d'",
    "assert (1, 'always')",
    "class C:\n    n: int = 1\n",
    "C.n",
    "n: int = 2",
    "__doc__",
    "global x",
    "@property\ndef p(self): pass",
    "try:\n    q\nexcept NameError:\n    6",
    "match 1:\n    case 1: 9",
    "x if x else 0  # end",
    "from __future__ import annotations",
    "yield 1",
    "{'a': 1}",
    "not x",
    "x\r",
    "elif_ = 3",
    "rb = 'x'",
    "u'text'",
    "if False:\n    pass",
    "else:\n    5",
    "def counts():\n    global y\n    y = 5\n",
    "__annotate__(1)",
    "w = 1; w",
    "w |= 6",
    "w == 1",
    "for i in 'ab': i; x",
    "s = '''\nfor i in 'a': pass\n# '''",
    "'''\ny = 1\n# '''",
    "print(\nend = 'end')",
    "[i\nfor i in 'ab']",
    "try:\n    1 / 0\nexcept ValueError:\n    2\nelse:\n    3\nfinally:\n    4",
    "for i in 'a':\n    pass\nelse:\n    x = 2",
    "while x and False: pass",
    "@staticmethod\n\ndef s(): pass",
    "forever = 1",
    "if_ = x",
]


def told(image, script: str) -> tuple[str, list[tuple[int, str]]]:
    """What comes out of a script: its answer and what it prints."""
    printed: list[tuple[int, str]] = []
    instance = Instance(image)
    try:
        instance.take_on(BEFORE_ANY_RUN, lambda output, text: printed.append((output, text)))
        entry = instance.enter("start", encode_start(script, "s.py", {}, BEFORE_ANY_RUN), Limits().wall_seconds)
        while not entry.advance():
            pass
    finally:
        instance.close()
    return str(entry.answer), printed


@pytest.mark.parametrize("script", PIECES)
def test_each_piece_alone_ends_the_same_with_its_tree(image, script):
    assert told(image, script) == told(image, script + WITH_TREE)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=2, max_size=5))
def test_pieces_in_any_order_end_the_same_with_their_tree(image, pieces):
    script = "\n".join(pieces)
    assert told(image, script) == told(image, script + WITH_TREE)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=2, max_size=5))
def test_pieces_of_a_long_script_in_any_order_end_the_same_with_their_tree(image, pieces):
    script = f"\n{LONG_COMMENT}\n".join(pieces)
    assert told(image, script) == told(image, script + WITH_TREE)


@pytest.mark.parametrize(
    "pieces",
    [
        ["x = 1", "u'''no documentation'''", "__doc__"],
        ["x = 1", "global x"],
        ["n: int = 2", "m: str = ''", "__annotate__(1)"],
    ],
)
def test_what_holds_for_a_whole_module_holds_for_a_long_script(image, pieces):
    script = f"\n{LONG_COMMENT}\n".join(pieces)
    assert told(image, script) == told(image, script + WITH_TREE)


@pytest.mark.parametrize(
    "around",
    [
        "x = '''\n{}'''",
        "x = (\n{}1\n)",
        "def f():\n{}    return 1",
        "if False:\n    pass\n{}else:\n    x = 1",
        "try:\n    pass\n{}finally:\n    x = 1",
    ],
)
def test_a_long_script_is_not_cut_inside_of_a_statement(image, around):
    script = around.format(40 * f"{LONG_COMMENT}\nname = 1\n" if "'''" in around else 40 * f"{LONG_COMMENT}\n")
    script += "\nname = 2\nname / 0"
    directly, _ = told(image, script)
    assert "ZeroDivisionError" in directly
    assert directly == told(image, script + WITH_TREE)[0]


def test_a_failure_in_a_long_script_is_told_at_its_own_line(image):
    lines = [f"value_{line} = {line} + 1" for line in range(2_000)]
    lines[1_500] = "value = 1 / 0"
    answer, _ = told(image, "\n".join(lines))
    assert r"line 1501, in <module>\n    value = 1 / 0\n            ~~^~~" in answer


def test_a_last_expression_far_from_its_first_line_is_the_value(image):
    script = "x = 1\n[\n" + "\n".join("'''\ntext\n'''," for _ in range(40)) + "\n]"
    answer, _ = told(image, script)
    assert answer.count("text") == 40
