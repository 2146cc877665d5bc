"""Patterns of tools: `*`, `?` and `[…]` over `server.tool`, case counts.

Above: policy, grants. Below: nothing of the package. A name is compared character by character: no two
spellings of a name are the same, however alike they look.
"""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING

from broker.errors import PatternError

if TYPE_CHECKING:
    from collections.abc import Callable

_NEVER = "(?!)"
"""What `translate` writes for a set of no characters."""


def has_wildcards(pattern: str) -> bool:
    """Tell whether a pattern may match another text than itself."""
    return not {"*", "?", "["}.isdisjoint(pattern)


@lru_cache(maxsize=4096)
def matcher(pattern: str) -> Callable[[str], object]:
    """Return a function that tells whether a whole text matches."""
    if not has_wildcards(pattern):
        return pattern.__eq__
    return re.compile(translate(pattern)).match


def can_match(pattern: str) -> bool:
    """Tell whether a pattern matches any text: one with a set of no characters, as `[z-a]`, matches none."""
    return not has_wildcards(pattern) or _NEVER not in translate(pattern)


def check_tool_pattern(pattern: str) -> str:
    """Return a pattern of `server.tool`.

    Raises:
        PatternError: It is empty or can match no tool.
        TypeError: It is no text.
    """
    if not isinstance(pattern, str):
        raise TypeError(f"a pattern of tools is text, as 'git.*', not a {type(pattern).__name__}")
    if not pattern:
        raise PatternError("a pattern of tools is empty; '*' means every tool")
    if not can_match(pattern):
        raise PatternError(f"the pattern {pattern!r} can match no tool: it has a set of no characters, as '[z-a]'")
    _, _, tool = pattern.partition(".")
    if not tool and not has_wildcards(pattern):
        whole = f"{pattern}*" if pattern.endswith(".") else f"{pattern}.*"
        raise PatternError(
            f"the pattern {pattern!r} can match no tool; write 'server.tool', or {whole!r} for a whole server"
        )
    return pattern


def literal(pattern: str) -> str:
    """Return the name that an exact pattern matches."""
    return re.sub(r"\[([*?\[])\]", r"\1", pattern)


def is_exact(pattern: str) -> bool:
    """Tell whether a pattern matches one name only."""
    return exact_pattern(literal(pattern)) == pattern


def exact_pattern(name: str) -> str:
    """Return the pattern that matches this name only: a server may call a tool `*`."""
    return re.sub(r"([*?\[])", r"[\1]", name)
