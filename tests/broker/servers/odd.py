"""A tool for each thing that a server can do wrong during a call; served by `plain.py`."""

from __future__ import annotations

import os


def echo(text: str) -> str:
    """Returns the text.\x1b]0;title\x07\x1b[31m Red.\u202e"""
    return text


def fail(text: str) -> str:
    """Fails with the text."""
    raise ValueError(text)


def die() -> str:
    """Ends the server's process."""
    os._exit(3)
