"""Tools that are logged to NOTES_LOG when they are executed; served by `plain.py`."""

from __future__ import annotations

import os
from pathlib import Path


def _executed(what: str) -> str:
    with Path(os.environ["NOTES_LOG"]).open("a", encoding="utf-8") as log:
        log.write(what + "\n")
    return what


def add(text: str, urgent: bool = False) -> str:  # noqa: FBT001, FBT002  # a tool's parameter
    """Keeps a note. An urgent one is kept first. Nothing is ever lost."""
    return _executed(f"add {text} {urgent}")


def count(word: str) -> str:
    """Counts notes that have a word. Words are compared in lower case."""
    return _executed(f"count {word}")


def find(word: str) -> str:
    """Finds notes. The newest comes first."""
    return _executed(f"find {word}")


def erase(text: str) -> str:
    """Erases a note. It cannot be had back."""
    return _executed(f"erase {text}")
