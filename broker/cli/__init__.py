"""The command line. `app.py` is what it accepts, the module of a command what the command does."""

from __future__ import annotations

from broker.cli.app import app

__all__ = ["main"]


def main() -> None:
    """Run `codemode`."""
    app()
