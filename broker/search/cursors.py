"""Cursors of pages: an offset, with what stands for the search that it belongs to.

Above: the pages of searches and of tiers. Below: nothing of the package. A cursor comes back from a model, and so is
read like any text of others.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import TYPE_CHECKING, Any

from broker.errors import SearchError
from broker.texts import search_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

_CURSOR_CHARACTERS = 200
_OFFSET_LIMIT = 1_000_000


def fingerprint_of(asked: Sequence[Any]) -> str:
    """Stand for what is asked, as JSON values, in twelve characters."""
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:12]


def cursor_at(offset: int, fingerprint: str) -> str:
    """Return the cursor of the page that begins at an offset."""
    return base64.urlsafe_b64encode(f"{fingerprint}:{offset}".encode()).decode().rstrip("=")


def offset_of(cursor: str, fingerprint: str) -> int:
    """Return the offset that a cursor stands for.

    Raises:
        SearchError: It cannot be read, or is of something else.
    """
    made_for, _, offset = _decoded(cursor).partition(":")
    if not (offset.isascii() and offset.isdigit() and int(offset) <= _OFFSET_LIMIT):
        raise SearchError(search_texts.NO_CURSOR)
    if made_for != fingerprint:
        raise SearchError(search_texts.CURSOR_OF_ANOTHER)
    return int(offset)


def _decoded(cursor: str) -> str:
    if len(cursor) > _CURSOR_CHARACTERS:
        return ""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return ""
