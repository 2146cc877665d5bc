"""Reads the text of a script around the place that a finding points at.

Above: judge.py. Below: script_text.py, which reads the whole script. Neither parses it; in doubt, both answer so that
the script passes.
"""

from __future__ import annotations

import re
from keyword import iskeyword
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    from codegen.checking.language_server import Finding
    from codegen.checking.script_text import ScriptText

_PATH = re.compile(r"([^\W\d]\w*)(?:\s*\[\s*(?:\"[^\"\\]*\"|'[^'\\]*'|-?\d+)\s*\])*")
_LOOPED = re.compile(rf"(\(?\s*await\b|(?:{_PATH.pattern})(?=\s*(?:[:\])}}]|(?:if|for)\b|$)))")
_LAMBDA = re.compile(r"\blambda\b")
_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_OF_ANNOTATIONS = frozenset("_.[]|, ")
_PARAMETERS = re.compile(r"\bdef\s+\w+\s*\(\Z")
_PARAMETER = re.compile(r"[(,]\s*\*{0,2}\w+\s?\Z")
_LONGEST_PATH = 500
_LONGEST_NAME = 80
_LONGEST_UPDATE = 2_000
_MAX_UPDATES = 50
_MAX_LOOPS = 3


class Place:
    """The place in a script that a finding points at."""

    def __init__(self, finding: Finding, script: ScriptText) -> None:
        """Find the place of `finding` in its script."""
        self._whole = script
        self._line = finding.line
        self.script = script.text
        self.start = script.offset(finding.line, finding.column)
        self.end = script.offset(finding.end_line, finding.end_column)

    @property
    def text(self) -> str:
        """The text pointed at."""
        return self.script[self.start : self.end]

    @property
    def names(self) -> frozenset[str]:
        """All words in the whole script that may be names."""
        return self._whole.names

    def mentions(self, *names: str) -> bool:
        """Tell whether the script has one of these names."""
        return not self.names.isdisjoint(names)

    def is_caught(self, errors: frozenset[str]) -> bool:
        """Tell whether the script catches one of these errors here, and so can go on."""
        return not self._whole.caught_at(self._line).isdisjoint(errors | {"Exception", "BaseException"})

    def defines(self, function: str) -> bool:
        """Tell whether the script has a function of its own of this name."""
        return function in self._whole.functions

    def is_in_plain_function(self, line: int) -> bool:
        """Tell by indentation whether the nearest function around a line is a plain `def`."""
        function = self._whole.functions_around.get(line)
        return function is not None and self._whole.lines[function - 1].lstrip().startswith("def")

    def declared_for(self, name: str) -> str:
        """Return how a function here gets at a variable of this name outside of it; empty if there is none."""
        functions = self._whole.functions_around
        assigns = re.compile(rf"[ \t]*{name}[ \t]*(?::[^=]*|[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)")
        lines = [number for number, line in enumerate(self._whole.lines, 1) if assigns.match(line)]
        assigning = {functions.get(number) for number in lines}
        function = functions.get(self._line)
        if function is None or function not in assigning:
            return ""
        while (function := functions.get(function)) is not None:
            if function in assigning:
                return f"nonlocal {name}"
        # A variable of a class is none that functions see.
        is_global = None in assigning and not self.mentions("class")
        return f"global {name}" if is_global else ""

    @property
    def is_awaited(self) -> bool:
        """Tell whether `await` stands before the place."""
        return re.search(r"\bawait[ \t(]*$", self.script[max(0, self.start - 20) : self.start]) is not None

    @property
    def is_in_lambda(self) -> bool:
        """Tell whether the place is inside the last lambda before it on its line."""
        line = self.script[max(0, self.start - _LONGEST_UPDATE) : self.start].rpartition("\n")[2]
        found = [*_LAMBDA.finditer(line)]
        depth = 0
        for character in line[found[-1].end() :].partition(":")[2] if found else ")":
            depth += (character in "([{") - (character in ")]}")
            if depth < 0 or (depth == 0 and character == ","):
                return False
        return True

    @property
    def is_annotation(self) -> bool:
        """Tell whether the place is plainly in an annotation, which the guest's Python does not evaluate.

        It follows a quote, `->`, or the colon after a name that begins a line or a parameter.
        """
        before = self.script[max(0, self.start - _LONGEST_UPDATE) : self.start]
        at = len(before) - 1
        while at >= 0 and (before[at].isalnum() or before[at] in _OF_ANNOTATIONS):
            at -= 1
        mark, head = before[at : at + 1], before[: max(at, 0)]
        if mark != ":":
            is_quoted = mark in ("'", '"') and re.match(rf"[\w.\[\]|, ]*{mark}", self.after) is not None
            return is_quoted or (mark == ">" and head.endswith("-"))
        name = head.rpartition("\n")[2].strip()
        opened = _last_opened(head)
        if opened is None:
            return name.isidentifier() and not iskeyword(name)
        return _PARAMETERS.search(head[: opened + 1]) is not None and _PARAMETER.search(head[opened:]) is not None

    @property
    def is_joined(self) -> bool:
        """Tell whether the place is one side of a `|`."""
        before = self.script[max(0, self.start - 20) : self.start].rstrip()
        return before.endswith("|") or self.after.lstrip().startswith("|")

    def is_given_to(self, functions: Container[str]) -> bool:
        """Tell whether the place is inside the brackets of a call of one of these functions."""
        around = self.script[max(0, self.start - _LONGEST_UPDATE) : self.start]
        depth = 0
        for at in range(len(around) - 1, -1, -1):
            depth += (around[at] == ")") - (around[at] == "(")
            if depth < 0:
                called = re.search(r"(\w+)\s*$", around[max(0, at - _LONGEST_NAME) : at])
                if called is not None and called[1] in functions:
                    return True
                depth = 0
        return False

    @property
    def is_dict_of_script(self) -> bool:
        """Tell whether the place is a variable that the script gives a dictionary."""
        made = rf"(?<![\w.]){self.text}[ \t]*(?::[^=\n]{{0,100}})?=[ \t]*(?:\{{|dict\()"
        return self.text.isidentifier() and re.search(made, self.script) is not None

    @property
    def rest_of_line(self) -> str:
        """The rest of the line, from the start of the place."""
        return self.script[self.start :].partition("\n")[0][:_LONGEST_UPDATE]

    @property
    def before(self) -> str:
        """The text before the end of the place, as much of it as a call may take."""
        return self.script[max(0, self.end - _LONGEST_UPDATE) : self.end]

    @property
    def arguments(self) -> list[str]:
        """The argument at the place and those that follow it in the call, as they are written; none if that is unclear.

        It is unclear behind strings of several lines, comments and backslashes.
        """
        found, begin, depth, quote = [], self.start, 0, ""
        for at in range(self.start, min(len(self.script), self.start + _LONGEST_UPDATE)):
            character = self.script[at]
            if character in ("\n\r\\" if quote else "#\\"):
                return []
            if quote or character in "\"'":
                quote = "" if character == quote else quote or character
                continue
            depth += (character in "([{") - (character in ")]}")
            if depth < 0 or (depth == 0 and character == ","):
                found.append(self.script[begin:at].strip())
                begin = at + 1
            if depth < 0:
                return [argument for argument in found if argument]
        return []

    @property
    def after(self) -> str:
        """The 40 characters after the place."""
        return self.script[self.end : self.end + 40]

    def is_of_call(self, text: str, loops: int = _MAX_LOOPS) -> bool:
        """Tell whether an expression is plainly the result of a call or a part of it, and not the script's own value.

        The checker's types for the script's own dictionaries and lists are too narrow: they may hold other kinds.
        The variable of a loop over a result is a part of it; at most `loops` nested ones are followed.
        """
        text = text.strip()
        if re.match(r"\(?\s*await\b", text):
            return True
        path = _PATH.fullmatch(text) if len(text) <= _LONGEST_PATH else None
        if path is None:
            return False
        name = path[1]
        mentions = [line for line in self._whole.lines if name in line]
        awaited = [re.match(rf"[ \t]*{name}[ \t]*=[ \t]*await\b", line) for line in mentions]
        if any(awaited):
            rests = [line[found.end() :] if found else line for found, line in zip(awaited, mentions, strict=True)]
            return not any(_binds(line, name) for line in rests)
        binding = [line for line in mentions if _binds(line, name)]
        looped = _looped(binding[0], name) if len(binding) == 1 and loops else None
        return looped is not None and self.is_of_call(looped, loops - 1)


def may_exist(key: str, place: Place) -> bool:
    """Tell whether the script may put this key into an object, or asks whether it is there before it uses it."""
    quoted = rf"(?:'{re.escape(key)}'|\"{re.escape(key)}\")"
    stores = rf"\[\s*{quoted}\s*\]\s*(?:[-+*/|&]|//|\*\*|:[^=\n]{{0,100}})?=(?!=)|setdefault\(\s*{quoted}"
    joins = rf"\|=?\s*\{{(?:[^{{}}]{{0,500}}[\s,])?{quoted}\s*:"
    asks = rf"\.get\(\s*{quoted}|{quoted}\s+(?:not\s+)?in\b|\b(?:KeyError|LookupError)\b"
    named = re.match(r"['\"]", place.text) is None or bool(re.search(asks, place.script))
    return named or bool(re.search(f"{stores}|{joins}", place.script)) or _updates(key, quoted, place.script)


def _updates(key: str, quoted: str, script: str) -> bool:
    starts = [found.end() for found in re.finditer(r"\bupdate\(", script)]
    if len(starts) > _MAX_UPDATES:
        return True
    given = re.compile(rf"{quoted}|\b{re.escape(key)}\s*=")
    return any(given.search(_arguments(script[start : start + _LONGEST_UPDATE])) for start in starts)


def _arguments(text: str) -> str:
    """Return the text before the bracket that closes a call; all of it if none does."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return text[:at]
    return text


def _last_opened(text: str) -> int | None:
    """Return the position of the last unclosed bracket, even in a string or comment; None if there is none."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] in ")]}") - (text[at] in "([{")
        if depth < 0:
            return at
    return None


def _looped(line: str, name: str) -> str | None:
    """Return what a line loops over with this name (a path or the beginning of a call), if nothing else binds it."""
    before, loop, after = line.partition(f"for {name} in ")
    after = after.lstrip()  # not by the expression, which would take the square of its length for many spaces
    over = _LOOPED.match(after)
    if not loop or over is None or _binds(before, name) or _binds(after[over.end() :], name):
        return None
    return over[1]


def _binds(line: str, name: str) -> bool:
    """Tell whether a line may assign to a name, or to a part of its value."""
    places = [found.start() for found in re.finditer(rf"(?<![\w.]){name}(?!\w)", line)]
    if not places:
        return False
    head, equals, tail = line.partition("=")
    unpacked = equals and not tail.startswith("=") and places[0] < len(head) and "," in head[places[0] :]
    function = re.search(r"\b(?:def|lambda)\b", line)
    loop = re.search(r"\bfor\b", line)
    last_in = max((found.start() for found in re.finditer(r"\bin\b", line)), default=0)
    return bool(
        unpacked
        or re.search(rf"(?<![\w.]){name}\s*(?:=(?!=)|[-+*/|&]=|:=)|\bas\s+{name}\b", line)
        or re.match(rf"\s*{name}\s*:", line)
        or (function and places[-1] > function.start())
        or (loop and any(loop.start() < place < last_in for place in places))
        or _stores(line, name)
    )


def _stores(line: str, name: str) -> bool:
    """Tell whether a line may assign to an element: a bracket after the name, then an `=` outside all brackets."""
    line = _QUOTED.sub("''", line)
    element = re.search(rf"\b{name}\s*\[", line)
    depth = 0
    for at, character in enumerate(line):
        depth += (character in "([{") - (character in ")]}")
        is_equals = character == "=" and line[at - 1 : at] not in set("=!<>") and line[at + 1 : at + 2] != "="
        if element is not None and at > element.start() and depth == 0 and is_equals:
            return True
    return False
