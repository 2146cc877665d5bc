"""Takes off what models put around a script, where nothing else can be meant.

Above: dispatch.py, and sampling.py for answers in a fence. Below: nothing. By patterns alone, in linear time: the host
parses no script. What stays unclear is left as it is, and Python's error with a hint of hints.py tells what is wrong.
"""

from __future__ import annotations

import json
import os.path
import re
from itertools import islice

_FENCE = re.compile(r"[ \t]*(```++|~~~++)[^`\n]*")
_FENCE_LINE = re.compile(r"(?m)^[ \t]*+(```++)([^`\n]*)$")
_LANGUAGES = frozenset({"", "py", "python", "python3"})
_STATEMENT = re.compile(
    r"(?m)^[ \t]*+(?:(?:async|await|class|def|for|from|if|import|raise|return|try|while|with)\b"
    r"|[\w.]++(?:[(\[]|[ \t]*+=))|\"{3}|'{3}|\\\r?$"
)
"""What a line of Python begins with, and a text in it that goes on over several lines."""
_OF_EXECUTE_CODE = frozenset({"code", "timeout", "session"})
_IS_CODE = re.compile(r"\n|\b(?:await|import|print|return)\b")


def plain_code(text: str) -> str:
    """Return code without what models put around it; its lines keep their numbers.

    That is: a byte order mark, JSON (code as a string that was encoded twice, a call of execute_code or its arguments),
    the fence of Markdown and prose outside of it, indentation of all lines.
    """
    code = unfenced(_decoded_again(text.removeprefix("\ufeff")))
    first = re.search(r"\S", code)
    is_indented = first is not None and code[first.start() - 1 : first.start()] in {" ", "\t"}
    return _dedented(code) if is_indented else code


def unfenced(text: str) -> str:
    """Return text without the fence of Markdown around it and the prose outside; empty lines stand in their place."""
    stripped = text.strip()
    opening, _, rest = stripped.partition("\n")
    fence = _FENCE.fullmatch(opening)
    if fence is None or not rest.endswith(fence[1]):
        return _out_of_prose(text)
    before = text[: text.index(fence[1])]
    lines_before = before.count("\n") + 1
    return "\n" * lines_before + rest.removesuffix(fence[1]).rstrip(" \t").removesuffix("\n")


def _out_of_prose(text: str) -> str:
    """Return the Python between the only two fences of a text, or all of it where what stands outside may be Python."""
    fences = [*islice(_FENCE_LINE.finditer(text), 3)]
    if len(fences) != 2:  # noqa: PLR2004  # a pair
        return text
    opening, closing = fences
    is_pair = closing[1] == opening[1] and not closing[2].strip() and opening[2].strip().lower() in _LANGUAGES
    if not is_pair or _STATEMENT.search(text[: opening.start()]) or _STATEMENT.search(text[closing.end() :]):
        return text
    begin = opening.end() + 1
    return "\n" * text.count("\n", 0, begin) + text[begin : closing.start()].removesuffix("\n")


def _dedented(code: str) -> str:
    """Return code without the indentation that all its lines have; `textwrap` makes a pattern of it, however long."""
    lines = code.split("\n")
    margins = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip(" \t")]
    margin = os.path.commonprefix(margins)  # noqa: RUF071  # of characters
    return "\n".join(line.removeprefix(margin) if line.strip(" \t") else "" for line in lines)


def _decoded_again(text: str) -> str:
    """Return the code in a text that is JSON itself; text in quotes that looks like no code is the script's value."""
    stripped = text.strip()
    if stripped[:1] + stripped[-1:] not in {'""', "{}"}:
        return text
    try:
        decoded = json.loads(stripped)
    except (ValueError, RecursionError):
        return text
    if isinstance(decoded, dict) and decoded.keys() == {"name", "arguments"} and decoded["name"] == "execute_code":
        decoded = decoded["arguments"]
        if isinstance(decoded, str):
            return _decoded_again(decoded)
    if isinstance(decoded, dict) and decoded.keys() <= _OF_EXECUTE_CODE:
        decoded = decoded.get("code")
        return decoded if isinstance(decoded, str) else text
    return decoded if isinstance(decoded, str) and _IS_CODE.search(decoded) else text
