"""JSON that people write: of two equal keys in one object the last would win in silence, so such a text is refused.

Above: config/text.py, and the tests on arguments that people type. Below: nothing of the package.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


class DuplicateKeyError(ValueError):
    """Two equal keys in one object; the text says which."""


def loads_unique(text: str) -> Any:
    """Return what a JSON text says.

    Raises:
        DuplicateKeyError: An object in it has two equal keys.
        RecursionError: It is nested too deep.
        ValueError: It is no JSON.
    """
    return json.loads(text, object_pairs_hook=_object_of)


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise DuplicateKeyError(f"the key {key!r} is given twice in one object")
    return dict(pairs)
