"""Python's cycle collector, at rest while much is read that has no cycles.

Above: whoever reads long JSON. Below: nothing. What a parser makes is looked at by several collections before it is
done, and each of them may walk everything else that the process holds.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Turn the collector off inside the block, for all threads, and on again if it was."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
