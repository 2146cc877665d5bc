"""Twelve tools whose descriptions take more than one page; served by `plain.py`."""

from __future__ import annotations


def _wide(number: int):
    def tool(the_first: str, the_second: bool = False) -> str:  # noqa: FBT001, FBT002  # a tool's parameter
        return f"{the_first} {the_second}"

    tool.__name__ = f"wide_{number}"
    tool.__doc__ = f"Does thing {number}. " + "Very much can be said of it, and has to be said here. " * 200
    return tool


wide_1, wide_2, wide_3, wide_4, wide_5, wide_6 = map(_wide, range(1, 7))
wide_7, wide_8, wide_9, wide_10, wide_11, wide_12 = map(_wide, range(7, 13))
