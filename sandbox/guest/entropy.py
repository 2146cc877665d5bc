"""Random numbers of a run: all from its seed, none from the host's entropy.

componentize-py seeds `random` when the image is first entered, through a slow host function. `quiet_snapshot`
keeps it from doing so; `seed` puts everything back and seeds it anew.
"""

import hashlib
import os
import random

PIECE = 65_536
"""Bytes drawn in one go."""

_real_seed = random.seed
_seed_generator = random.Random.seed


def quiet_snapshot() -> None:
    """Makes `random.seed` do nothing until the run's own seed arrives."""
    random.seed = lambda *_, **__: None


def seed(value: int) -> None:
    """Seeds `random`, `os.urandom`, and with it `secrets`, `uuid` and `tempfile`."""
    random.seed = _real_seed
    _real_seed(value)
    stream = _Stream(value)
    os.urandom = random._urandom = stream.read
    random.Random.seed = _seed_from_run


def _seed_from_run(self, a=None, version=2):
    """Seeds a generator as `Random.seed` does, but without a seed from the run's instead of through a host function."""
    _seed_generator(self, int.from_bytes(os.urandom(32)) if a is None else a, version)


class _Stream:
    """An endless stream of bytes: SHAKE-256 of the seed and a counter, a piece at a time."""

    def __init__(self, value):
        self._key = hashlib.sha256(str(value).encode()).digest()
        self._pieces = 0

    def read(self, size: int, /) -> bytes:
        """Returns `size` bytes, as `os.urandom` does."""
        if size < 0:
            raise ValueError("negative argument not allowed")
        if size <= PIECE:
            return self._draw(size)
        drawn = bytearray(size)  # a size beyond the run's memory fails here, at once
        for begin in range(0, size, PIECE):
            drawn[begin : begin + PIECE] = self._draw(min(PIECE, size - begin))
        return bytes(drawn)

    def _draw(self, size):
        self._pieces += 1
        return hashlib.shake_256(self._key + self._pieces.to_bytes(8)).digest(size)
