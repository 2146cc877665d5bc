"""Moving the bytecode of a run leaves all other functions as CPython made them."""

from __future__ import annotations

import pytest

from sandbox import Completed

pytestmark = pytest.mark.anyio


async def test_calls_of_a_library_are_specialised(run):
    script = """
        import colorsys, dis
        def convert():
            for _ in range(100):
                colorsys.rgb_to_hsv(0.1, 0.2, 0.3)
        convert()
        return [one.opname for one in dis.get_instructions(convert, adaptive=True) if one.opname.startswith("CALL_PY")]
    """
    assert (await run(script)).outcome == Completed(["CALL_PY_EXACT_ARGS"])
