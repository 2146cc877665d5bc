"""Random numbers of a run: all from its seed, none from the host's entropy.

Seeding takes as many instructions as compiling a small script, which mostly draws nothing: so the functions of `random`
that share a generator are not in the module until a script asks for one of them. What a run sets is one object: each
attribute of a module or class that it wrote would cost the instance a page or two.
"""

import hashlib
import os
import random

PIECE = 65_536
"""Bytes drawn in one go."""

_seed_generator = random.Random.seed
_shared = {name: value for name, value in vars(random).items() if getattr(value, "__self__", None) is random._inst}
_shared["_inst"] = random._inst


class _Stream:
    """An endless stream of bytes: SHAKE-256 of the seed and a counter, a piece at a time."""

    def __init__(self):
        self.begin(None)

    def begin(self, seed: int | None) -> None:
        """Start again; without a seed, nothing may be drawn yet."""
        self.seed = seed
        self._key = None
        self._pieces = 0

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes, as `os.urandom` does."""
        if size < 0:
            raise ValueError("negative argument not allowed")
        if size <= PIECE:
            return self._draw(size)
        drawn = bytearray(size)  # a size beyond the run's memory fails here, at once
        for begin in range(0, size, PIECE):
            drawn[begin : begin + PIECE] = self._draw(min(PIECE, size - begin))
        return bytes(drawn)

    def _draw(self, size):
        if self._key is None:
            self._key = hashlib.sha256(str(self.seed).encode()).digest()
        self._pieces += 1
        return hashlib.shake_256(self._key + self._pieces.to_bytes(8)).digest(size)


_stream = _Stream()


def install() -> None:
    """Have `random`, `os.urandom`, and with it `secrets`, `uuid` and `tempfile`, draw from the run's seed."""
    os.urandom = random._urandom = _stream.read
    random.Random.seed = _seed_from_run
    random.__getattr__ = _show
    random.__dir__ = lambda: sorted({*random.__dict__, *_shared})
    _hide()


def seed(value: int | None) -> None:
    """Begin with a run's seed; with None, wait for one."""
    if "_inst" in random.__dict__:
        _hide()
    _stream.begin(value)


def _hide():
    for name, value in _shared.items():
        if random.__dict__.get(name) is value:  # not what a script has put in its place
            del random.__dict__[name]


def _show(name):
    """Return what is not in `random` itself, for Python, which asks."""
    if name not in _shared or "_inst" in random.__dict__:
        raise AttributeError(f"module 'random' has no attribute {name!r}", name=name, obj=random)
    if _stream.seed is None:
        return _seed_nothing
    _seed_generator(_shared["_inst"], _stream.seed)
    random.__dict__.update({**_shared, **random.__dict__})
    return _shared[name]


def _seed_nothing():
    """Stand for `random.seed`, which componentize-py calls when the image is first entered, before any run."""


def _seed_from_run(self, a=None, version=2):
    """Seed a generator as `Random.seed` does, but without a seed from the run's instead of through a host function."""
    _seed_generator(self, int.from_bytes(os.urandom(32)) if a is None else a, version)
