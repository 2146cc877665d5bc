"""What the text of a script tells about a place in it, without parsing it: the host never parses scripts.

Above: verdicts.py. These are readings of text by pattern; each errs towards letting a script pass.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codegen.type_checker import Finding

_PATH = re.compile(r"([^\W\d]\w*)(?:\s*\[\s*(?:\"[^\"\\]*\"|'[^'\\]*'|-?\d+)\s*\])*")


class Place:
    """The text a finding points at."""

    def __init__(self, finding: Finding, script: str) -> None:
        """Find the place of `finding` in `script`."""
        self.script = script
        lines = script.split("\n")
        self.start = sum(len(line) + 1 for line in lines[: finding.line - 1]) + finding.column - 1
        self.end = sum(len(line) + 1 for line in lines[: finding.end_line - 1]) + finding.end_column - 1

    @property
    def text(self) -> str:
        """The text pointed at."""
        return self.script[self.start : self.end]

    def is_in_plain_function(self, line: int) -> bool:
        """Tell by indentation whether the nearest function around a line is a plain `def`."""
        lines = self.script.split("\n")
        indentation = _indentation(lines[line - 1])
        for above in reversed(lines[: line - 1]):
            if above.strip() and _indentation(above) < indentation:
                indentation = _indentation(above)
                if re.match(r"\s*(async\s+)?def\b", above):
                    return above.lstrip().startswith("def")
        return False

    @property
    def before(self) -> str:
        """The script up to the end of that text."""
        return self.script[: self.end]

    @property
    def after(self) -> str:
        """Some of what follows."""
        return self.script[self.end : self.end + 40]


def words_of(script: str) -> frozenset[str]:
    """Return every word of a script, in strings and comments too, in the form in which Python compares names."""
    return frozenset(re.findall(r"\w+", unicodedata.normalize("NFKC", script)))


def is_of_call(text: str, script: str) -> bool:
    """Tell whether an expression is plainly the result of a call or a part of it, not a value the script put together.

    The checker's idea of the script's own dictionaries and lists is too narrow: they may hold other kinds of values.
    """
    text = text.strip()
    if re.match(r"\(?\s*await\b", text):
        return True
    path = _PATH.fullmatch(text)
    if path is None:
        return False
    name = path[1]
    from_call = re.findall(rf"^[ \t]*{name}[ \t]*=[ \t]*await\b", script, re.MULTILINE)
    bound = re.findall(
        rf"(?<![\w.]){name}\s*(?:=(?!=)|[-+*/|&]=|:=|:[^\n=]*=)|\bfor\b[^\n]*\b{name}\b[^\n]*\bin\b"
        rf"|\bas\s+{name}\b|\b(?:def|lambda)\b[^\n]*\b{name}\b|^[^\n=]*\b{name}\b[^\n=]*,[^\n=]*=(?!=)",
        script,
        re.MULTILINE,
    )
    stored = re.search(rf"\b{name}\s*(?:\[[^\]\n]*\]\s*)+(?:[-+*/|&]|//|\*\*)?=(?!=)", script)
    return bool(from_call) and len(bound) == len(from_call) and stored is None


def may_exist(key: str, place: Place) -> bool:
    """Tell whether the script may put such a key into an object, or asks before it uses one."""
    quoted = rf"(?:'{re.escape(key)}'|\"{re.escape(key)}\")"
    stores = rf"\[\s*{quoted}\s*\]\s*(?:[-+*/|&]|//|\*\*|:[^=\n]*)?=(?!=)"
    updates = rf"(?:setdefault\(\s*{quoted}|update\((?:[^()]|\([^()]*\))*(?:{quoted}|\b{re.escape(key)}\s*=))"
    asks = rf"\.get\(\s*{quoted}|{quoted}\s+(?:not\s+)?in\b|\b(?:KeyError|LookupError)\b"
    named = re.match(r"['\"]", place.text) is None or bool(re.search(asks, place.script))
    return named or bool(re.search(stores, place.script) or re.search(updates, place.script))


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
