"""The command line. `app.py` is what it accepts, the module of a command what the command does."""

from __future__ import annotations

import gc

from broker.cli.app import app
from broker.cli.streams import open_standard_streams

__all__ = ["main"]


def main() -> None:
    """Run `codemode`."""
    open_standard_streams()
    # Loading the SDK makes hundreds of thousands of objects that stay; looking through them again and again is a sixth
    # of the time that starting takes.
    gc.set_threshold(100_000)
    app()
