"""Random numbers of a run: all from its seed, none from the host's entropy.

componentize-py seeds `random` when the image is first entered, through a slow host function. `quiet_snapshot`
keeps it from doing so. Seeding takes as many instructions as compiling a small script, which mostly draws nothing: so
the functions of `random` that share a generator are not in the module until a script asks for one of them.
"""

import hashlib
import os
import random

PIECE = 65_536
"""Bytes drawn in one go."""

_seed_generator = random.Random.seed
_shared = {name: value for name, value in vars(random).items() if getattr(value, "__self__", None) is random._inst}
_shared["_inst"] = random._inst
_value = 0


def quiet_snapshot() -> None:
    """Make `random.seed` do nothing until the run's own seed arrives."""
    _hide()
    random.seed = lambda *_, **__: None


def seed(value: int) -> None:
    """Seed `random`, `os.urandom`, and with it `secrets`, `uuid` and `tempfile`."""
    global _value
    _value = value
    random.__dict__.pop("seed", None)
    if "_inst" in random.__dict__:
        _hide()
    stream = _Stream(value)
    os.urandom = random._urandom = stream.read
    random.Random.seed = _seed_from_run


def _hide():
    for name in _shared:
        random.__dict__.pop(name, None)
    random.__getattr__ = _show
    random.__dir__ = lambda: sorted({*random.__dict__, *_shared})


def _show(name):
    """Return what is not in `random` itself, for Python, which asks."""
    if name not in _shared:
        raise AttributeError(f"module 'random' has no attribute {name!r}", name=name, obj=random)
    random.__dict__.update(_shared)
    _seed_generator(random._inst, _value)
    return _shared[name]


def _seed_from_run(self, a=None, version=2):
    """Seed a generator as `Random.seed` does, but without a seed from the run's instead of through a host function."""
    _seed_generator(self, int.from_bytes(os.urandom(32)) if a is None else a, version)


class _Stream:
    """An endless stream of bytes: SHAKE-256 of the seed and a counter, a piece at a time."""

    def __init__(self, value):
        self._value = value
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
            self._key = hashlib.sha256(str(self._value).encode()).digest()
        self._pieces += 1
        return hashlib.shake_256(self._key + self._pieces.to_bytes(8)).digest(size)
