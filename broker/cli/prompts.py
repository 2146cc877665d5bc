"""Menus and lines of text on the terminal, on stderr: stdout is the script's.

Above: consent.py, forms.py, and commands that ask by themselves. Below: signals.py, and questionary, whose menus work
with prompt_toolkit and so on any terminal.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from rich.text import Text

from broker.cli.signals import interrupt
from broker.cli.terminal import notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from questionary import Question as Prompt

_LINE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class MenuLine:
    """One line of a menu; `key` is a letter that goes to it, where it has one."""

    key: str
    title: str
    value: str


async def chosen(lines: Sequence[MenuLine], message: str, *, default: Any = None) -> str | None:
    """Return the value of the chosen line; the pointer begins at the first one, or at `default`."""
    import questionary  # noqa: PLC0415  # 40 ms, only where somebody is asked

    has_keys = all(line.key for line in lines)
    choices = [
        questionary.Choice(line.title, value=line.value, shortcut_key=line.key if has_keys else None) for line in lines
    ]
    prompt = questionary.select(
        message,
        choices=choices,
        default=default if any(line.value == default for line in lines) else None,
        use_shortcuts=has_keys,
        use_jk_keys=False,
        instruction="(arrow keys or letter, then Enter)" if has_keys else "(arrow keys, then Enter)",
        **_streams(),
    )
    return _text(await _ask(prompt))


async def several(options: Sequence[tuple[str, str]], message: str, default: Sequence[str]) -> list[str] | None:
    """Return the values of the ticked lines; each option is a value and its title."""
    import questionary  # noqa: PLC0415

    choices = [questionary.Choice(title, value=value, checked=value in default) for value, title in options]
    answer = await _ask(questionary.checkbox(message, choices=choices, use_jk_keys=False, **_streams()))
    return None if answer is None else [str(one) for one in answer]


async def typed(message: str, default: str, *, validate: Any = None) -> str | None:
    """Return what was typed."""
    import questionary  # noqa: PLC0415

    return _text(await _ask(questionary.text(message, default=default, validate=validate, **_streams())))


async def said_yes(question: str) -> bool:
    """Ask with a line of text; anything but a yes is a no."""
    notes().print(Text(f"{question} [y/N] "), end="")
    return (await read_line()).strip().lower() in {"y", "yes"}


async def read_line() -> str:
    """Read what is typed without a thread, which could not be interrupted; the end of input is an empty line."""
    await anyio.wait_readable(sys.stdin)
    return os.read(sys.stdin.fileno(), _LINE_BYTES).decode("utf-8", "replace")


async def _ask(prompt: Prompt) -> Any:
    try:
        return await prompt.application.run_async()
    except KeyboardInterrupt:
        interrupt()
        await anyio.sleep_forever()
    except EOFError:
        pass
    return None


def _text(answer: Any) -> str | None:
    return None if answer is None else str(answer)


def _streams() -> dict[str, Any]:
    """Return where to ask: on stderr, since stdout is the script's."""
    from prompt_toolkit.input import create_input  # noqa: PLC0415
    from prompt_toolkit.output import create_output  # noqa: PLC0415

    return {"input": create_input(sys.stdin), "output": create_output(sys.stderr)}
