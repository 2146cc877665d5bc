"""Words mistakes in the arguments of a call: a name, their number, or a type that is wrong in every run.

Above: judge.py. Below: mistake.py, type_text.py.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from codegen.checking.mistake import AWAIT, Mistake, listed, nearest
from codegen.checking.type_text import certainly_differ, kinds_of, split_outside_brackets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codegen.checking.known_names import Known
    from codegen.checking.language_server import Finding
    from codegen.checking.place import Place

    Judged = tuple[Finding, Mistake]

# A literal in a message is the script's text, so what stands before it is matched non-greedily.
_ARGUMENT = re.compile(r"Argument to (?:[\w ]+ )?`([\w.]+)` is incorrect: Expected `(.+?)`, found `(.+)`", re.DOTALL)
_KEY_ARGUMENT = re.compile(
    r'Invalid argument to key "(.*?)" with declared type `(.+?)` on TypedDict `(\w+)`: value of type `(.+)`', re.DOTALL
)
_INDEX = re.compile(r"cannot be called with key of type `(.+?)` on object of type `(.+)`", re.DOTALL)
_NAMED_PARAMETER = re.compile(r"Argument `([^`]+)` does not match any known parameter of [\w ]+ `([\w.]+)`")
_CALLEE = re.compile(r"(?:of|to) [\w ]+ `([\w.]+)`")
_LITERAL = r"(?:\"[^\"\\\n]*\"|'[^'\\\n]*'|-?\d+(?:\.\d*)?|True|False)"
_LITERAL_LIST = re.compile(rf"\[\s*{_LITERAL}\s*(?:,\s*{_LITERAL}\s*)*(?:,\s*)?\]")
_LONGEST_LIST = 2_000
_SHOWN_CHARACTERS = 120
_ELLIPSIS = "EllipsisType"
_TEXTS = frozenset({"str", "bytes", "Buffer", "None", "SupportsInt", "SupportsIndex", "SupportsFloat"})
_VALUES = frozenset({"dict", "list", "int", "float", "bool"})
_MISSING = re.compile(r"required parameters? (.+?) of ")
_GIVEN = re.compile(r"expected 0, got (\d+)")
_PARTIAL_OF = re.compile(r"\bpartial\s*\(\s*((?:\w+\.)*(\w+))\s*,[^()]*\Z")
_MEANT = re.compile(r"did you mean `(\w+)`")


def wrong_call(finding: Finding, place: Place, known: Known) -> Mistake | None:
    """Judge a call with an argument too many or too few, or one of an unknown name."""
    if place.mentions("metaclass"):
        return None  # which may call classes in a way of its own
    unknown = _NAMED_PARAMETER.search(finding.message)
    callee = _CALLEE.search(finding.message)
    if unknown is None and callee is None:
        return None  # a method of a dictionary, to which the checker gives parameters of its own
    function = unknown[2] if unknown is not None else callee[1] if callee is not None else ""
    opening = f"{function}("
    takes = _parameters(function, place, known)
    if function == "partial" and takes is None and (of := _PARTIAL_OF.search(place.before)) is not None:
        opening, takes = f"partial({of[1]}, ", _parameters(of[2], place, known)
    if takes is None:
        return Mistake(finding.message)
    if unknown is not None:
        return Mistake(f"{function} has no parameter `{unknown[1]}`", nearest(unknown[1], takes, "it takes"))
    by_position = _GIVEN.search(finding.message)
    if by_position is not None and int(by_position[1]) <= len(takes):
        return Mistake(finding.message, _by_name(opening, int(by_position[1]), takes, place))
    return Mistake(finding.message, f"it takes: {listed(takes)}")


def wrong_argument(finding: Finding, place: Place, known: Known) -> Mistake | None:
    """Judge a value that is not of the type that a call, a key or a subscript wants."""
    if place.text.startswith("**"):
        return None
    index = _INDEX.search(finding.message)
    if index is not None:
        is_certain = not (known.has_unions or known.results_altered) and place.is_of_call(place.text)
        return _index(index[1], index[2], place) if is_certain else None
    in_key = _KEY_ARGUMENT.match(finding.message)
    if in_key is not None:
        if place.is_joined or not place.is_given_to(known.parameters):
            return None
        key, expected, _, found = in_key.groups()
        if certainly_differ(found, expected, known.objects):
            return Mistake(f'"{key}" must be {expected}, not {found}', AWAIT if _is_coroutine(found) else "")
        return None
    called = _ARGUMENT.match(finding.message)
    return _given(place, (called[1], called[2], called[3]), known) if called is not None else None


def taken_for_object(text: str, place: Place) -> str:
    """Return a hint for a text that the script uses like an object."""
    if f"for {text} in " in place.script:
        return "a loop over a dict gives its keys, over a text its characters"
    return "it is the text itself: json.loads() reads it if it is JSON"


def said_once(judged: Sequence[Judged]) -> list[Judged]:
    """Return the findings without missing arguments that another finding about the same call explains.

    A misspelt argument gives two findings: one argument too many, and one that is missing.
    """
    others = [one for one in judged if one[0].rule in {"unknown-argument", "too-many-positional-arguments"}]
    return [one for one in judged if one[0].rule != "missing-argument" or not _accounted_for(one[0], others)]


def _by_name(opening: str, count: int, takes: Sequence[str], place: Place) -> str:
    """Return how to write a call whose first arguments are given by position, or all of them in one dict.

    The order of the parameters is a guess, because the properties of a JSON object have no order.
    """
    whole = place.arguments
    if sum(map(len, whole)) > _SHOWN_CHARACTERS or not count <= len(whole) or any(one[0] == "*" for one in whole):
        whole = [place.text if len(place.text) <= _SHOWN_CHARACTERS and "\n" not in place.text else "..."]
    if count == 1 and place.text.startswith("{"):
        return f"give every argument by name: {opening}**{'{...}' if whole[0] == '...' else whole[0]})"
    if count == 1 < len(takes) and whole[0] == place.text and place.is_dict_of_script:
        return f"give every argument by name: {opening}**{place.text})"
    values = [*whole[:count], *["..."] * (count - len(whole))]
    named = [f"{name}={value}" for name, value in zip(takes, values, strict=False)]
    return f"give every argument by name: {opening}{', '.join([*named, *whole[count:]])})"


def _given(place: Place, called: tuple[str, str, str], known: Known) -> Mistake | None:
    function, expected, found = called
    if _is_coroutine(found):
        # A function of the script may await what it is given, whatever it says that it takes.
        is_own = place.defines(function.rpartition(".")[2])
        return None if is_own else Mistake(f"{function} is given a call that was not awaited", AWAIT)
    name = re.match(r"\s*(\w+)\s*=(?!=)", place.text)
    value = place.text[name.end() :].strip() if name is not None else place.text
    if function == "loads" and not place.defines(function):
        return _parsed(found, value, place, known)
    if _parameters(function, place, known) is None:
        return _taken_for_text(called, value, place, known)
    parameter = name[1] if name is not None else "the argument"
    choices = known.choices.get((function, parameter), frozenset())
    if re.search(r"[\w)]\s*\[|\.get\(", value) and not place.is_of_call(value):
        return None
    is_chosen = not choices or not _not_chosen(found, choices)
    if found != _ELLIPSIS and not _certain(found, expected, value, known) and is_chosen:
        return None
    hint = f"one of: {listed(map(repr, sorted(choices)))}" if choices else _instead(called, value, known)
    if found in {"None", _ELLIPSIS} and (function, parameter) in known.optional:
        hint = "leave it out"
    shown = "`...`" if found == _ELLIPSIS else found
    return Mistake(f"`{parameter}` of {function} must be {expected}, not {shown}", hint)


def _instead(called: tuple[str, str, str], value: str, known: Known) -> str:
    """Return how a value becomes what is expected; an object or a list becomes text by one of its keys, or as JSON."""
    _, expected, found = called
    if found == _ELLIPSIS:
        return "which stands in a stub for what is not given: write a value"
    if value.startswith("json.dumps("):
        return "leave out json.dumps()"
    if expected.startswith("list[") and not certainly_differ(f"list[{found}]", expected, known.objects):
        return "put it in a list: [...]"
    if expected != "str":
        return ""
    if found in known.objects:
        return f"its keys: {listed(known.keys[found])}"
    return "`json.dumps(...)` makes JSON text of it" if found.startswith(("dict[", "list[")) else ""


def _parsed(found: str, value: str, place: Place, known: Known) -> Mistake | None:
    """Judge a result that is parsed as JSON: only text can be."""
    kinds = kinds_of(found, known.objects)
    if kinds.unknown or kinds.several or not kinds.names <= _VALUES or not place.is_of_call(value):
        return None
    if known.results_altered:
        return None
    if found in known.objects:
        keys = listed(known.keys[found])
        hint = f"leave out json.loads(), or give it a text of that dict; its keys: {keys}"
        return Mistake(f"json.loads is given {found}, which is a value already", hint)
    return Mistake(f"json.loads is given {found}, which is a value already", "leave out json.loads()")


def _taken_for_text(called: tuple[str, str, str], value: str, place: Place, known: Known) -> Mistake | None:
    """Judge an object that a tool returned where a function of Python's library wants text."""
    function, expected, found = called
    wanted = {member.strip() for member in split_outside_brackets(expected, "|")}
    if not ("str" in wanted <= _TEXTS and found in known.objects and place.is_of_call(value)):
        return None
    if known.results_altered or any(place.defines(name) for name in function.split(".")):
        return None
    return Mistake(f"{function} wants text, and {found} is a dict", f"its keys: {listed(known.keys[found])}")


def _parameters(function: str, place: Place, known: Known) -> tuple[str, ...] | None:
    """Return what a tool's function takes; None for a function of the script, which may have the name of a tool."""
    by_namespace = known.parameters.get(function, {})
    calls = re.findall(rf"(?:\b(\w+)\s*\.\s*)?\b{re.escape(function)}\s*\(", place.before)
    if calls and calls[-1] in by_namespace:
        return by_namespace[calls[-1]]
    return None if place.defines(function) else next(iter(by_namespace.values()), None)


def _certain(found: str, expected: str, value: str, known: Known) -> bool:
    if certainly_differ(found, expected, known.objects):
        return True
    if len(value) > _LONGEST_LIST or not _LITERAL_LIST.fullmatch(value):
        return False
    # The checker prints a list of literals as what was expected or what was found, so the text tells.
    wanted = kinds_of(kinds_of(expected, known.objects).items, known.objects)
    elements = {type(element).__name__ for element in ast.literal_eval(value)}
    numbers = {"int", "float"} if wanted.names & {"int", "float"} else set()
    return not wanted.unknown and not wanted.literals and bool(elements - wanted.names - numbers)


def _not_chosen(found: str, choices: frozenset[str]) -> bool:
    given = kinds_of(found, frozenset())
    return given.only_literals and not given.unknown and not any(value in choices for _, value in given.literals)


def _is_coroutine(type_: str) -> bool:
    return type_.startswith("CoroutineType[")


def _index(key: str, container: str, place: Place) -> Mistake | None:
    asked = key.removeprefix("Literal[").removesuffix("]")
    if asked == key or not asked.startswith(('"', "'")):
        return None
    if container.startswith("list["):
        return Mistake(f"a list ({container}) has no key {asked}", "take one element, or loop over it")
    if container != "str":
        return None
    return Mistake(f"a str has no key {asked}", taken_for_object(place.text, place))


def _accounted_for(missing: Finding, others: Sequence[Judged]) -> bool:
    named = _MISSING.search(missing.message)
    names = set(re.findall(r"`(\w+)`", named[1])) if named is not None else set()
    found: set[str] = set()
    for other, mistake in others:
        begin, end = (other.line, other.column), (other.end_line, other.end_column)
        if not (missing.line, missing.column) <= begin <= end <= (missing.end_line, missing.end_column):
            continue
        given, meant = _GIVEN.search(other.message), _MEANT.search(mistake.hint)
        if given is not None and int(given[1]) >= len(names):
            return True
        if meant is not None:
            found.add(meant[1])
    return bool(names) and names <= found
