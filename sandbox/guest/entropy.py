"""Random numbers of a run: all from its seed, none from the host's entropy.

componentize-py seeds `random` when the image is first entered, through a slow host function. `quiet_snapshot`
keeps it from doing so; `seed` puts everything back and seeds it anew.
"""

import hashlib
import os
import random

_real_seed = random.seed


def quiet_snapshot() -> None:
    """Makes `random.seed` do nothing until the run's own seed arrives."""
    random.seed = lambda *_, **__: None


def seed(value: int) -> None:
    """Seeds `random`, `os.urandom`, and with it `secrets`, `uuid` and `tempfile`."""
    random.seed = _real_seed
    _real_seed(value)
    stream = _Stream(value)
    os.urandom = random._urandom = stream.read


class _Stream:
    """An endless stream of bytes: BLAKE2b of a counter, keyed by the seed."""

    def __init__(self, value):
        self._key = hashlib.blake2b(str(value).encode(), digest_size=32).digest()
        self._blocks = 0

    def read(self, size: int, /) -> bytes:
        """Returns `size` bytes, as `os.urandom` does."""
        if size < 0:
            raise ValueError("negative argument not allowed")
        parts = bytearray()
        while len(parts) < size:
            parts += hashlib.blake2b(self._blocks.to_bytes(16), key=self._key).digest()
            self._blocks += 1
        return bytes(parts[:size])
