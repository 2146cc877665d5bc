"""Fills the holes that importing has left in the heap, so that what a script makes lies close together.

An instance shares the snapshot's pages until it writes to them. New objects go where there is room, and after some 200
imports there is a little room in thousands of places: each first object in such a place costs the instance a whole
page. Objects that live for ever take that room while the image is made, and scripts begin on untouched pages.
"""

import functools

LARGEST = 64 * 1024
SMALLEST = 24
"""Bytes of a hole that is filled. The allocator hands out multiples of 16, less its own 4; those of 12 come last."""

_BEYOND_HOLES = 8 * 1024 * 1024  # no hole is that large, so an object of this size lies behind all of them

_EMPTY_BYTES = 17  # what a bytes object takes beside its content, in this interpreter

_fillers = []


class _Filler:
    def method(self):
        """Be bound."""


_REUSED = (
    list,
    dict,
    lambda: len(_fillers) + _BEYOND_HOLES,
    lambda: iter(_fillers),
    lambda: _Filler().method,
    *(functools.partial(tuple, range(length)) for length in range(1, 8)),
)
"""What the interpreter does not give back when it is freed, but keeps for the next of its kind, wherever it lies."""


def fill_holes() -> None:
    """Allocate from the largest size to the smallest, each until nothing but the end of the heap is left for it.

    What this made on the way would leave holes itself, so it makes next to nothing.
    """
    end = id(bytes(_BEYOND_HOLES))
    size = LARGEST
    while size >= SMALLEST:
        while id(filler := bytes(max(0, size - _EMPTY_BYTES))) < end:
            _fillers.append(filler)
        size -= max(16, size // 8 // 16 * 16)
    while id(filler := object()) < end:
        _fillers.append(filler)
    for make in _REUSED:
        while id(filler := make()) < end:
            _fillers.append(filler)
