"""Differences between a recording and another run, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from codegen.plain_text import indented

if TYPE_CHECKING:
    from rich.console import Console

_LINE_CHARACTERS = 500


def print_diff(console: Console, text: str) -> None:
    """Print a difference, made inert: what a recording says was printed may hold terminal sequences."""
    for line in text.splitlines():
        style = "red" if line.startswith("-") else "green" if line.startswith("+") else ""
        console.print(Text(indented(line, _LINE_CHARACTERS), style), soft_wrap=True)
