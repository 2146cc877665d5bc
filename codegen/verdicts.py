"""Which findings of the type checker stop a script, and what to tell the model about them.

Above: check.py. Below: type_text. Only what is wrong in every run is kept: a wrong, missing or ill-typed
argument, an unknown result key, a missing `await`, an unknown tool. Everything that depends on values the
checker cannot see (a key added by the script, a dictionary built elsewhere, a value that may be None) is
dropped, so that no correct script is stopped. Messages of `ty` are matched as text; one that is not
recognised is dropped too.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from codegen.checker_input import ERROR_NAMES
from codegen.missing_names import Verdict, listed, nearest, undefined, unknown_tool
from codegen.script_text import may_exist
from codegen.type_text import certainly_differ, kinds_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from codegen.known_names import Known
    from codegen.script_text import Place
    from codegen.type_checker import Finding

_AWAIT = "write `await` before the call"
_TOOLS_MODULE = re.compile(r"`(tools(?:\.\w+)?)` has no member `(\w+)`")
_UNRESOLVED_TOOLS = re.compile(r"Cannot resolve imported module `tools\.(\w+)`")
_OBJECT = re.compile(r"bject of type `(.+?)` (?:has no attribute `(\w+)`|with no|is not|is always)")
_ARGUMENT = re.compile(r"Argument to [\w ]+ `([\w.]+)` is incorrect: Expected `(.+)`, found `(.+)`$", re.DOTALL)
_KEY_ARGUMENT = re.compile(
    r'key "(.*)" with declared type `(.+)` on TypedDict `(\w+)`: value of type `(.+)`$', re.DOTALL
)
_KEY = re.compile(r'key "(.*?)" for TypedDict `(\w+)`')
_INDEX = re.compile(r"cannot be called with key of type `(.+)` on object of type `(.+)`$", re.DOTALL)
_OPERATOR = re.compile(r"between objects of type `(.+)` and `(.+)`$", re.DOTALL)
_NAMED_PARAMETER = re.compile(r"Argument `(\w+)` does not match any known parameter of [\w ]+ `([\w.]+)`")
_CALLEE = re.compile(r"(?:of|to) [\w ]+ `([\w.]+)`")
_LITERAL = r"(?:\"[^\"\\\n]*\"|'[^'\\\n]*'|-?\d+(?:\.\d*)?|True|False)"
_LITERAL_LIST = re.compile(rf"\[\s*{_LITERAL}\s*(?:,\s*{_LITERAL}\s*)*(?:,\s*)?\]")
_LONGEST_LIST = 2_000
_OUTSIDE_FUNCTION = "`return` statement outside of a function"
_SIMPLE = frozenset({"str", "int", "float", "bool", "list", "dict", "coroutine"})


def verdict(finding: Finding, place: Place, known: Known) -> Verdict | None:
    """Return what to say about a finding, or None if it is not certain."""
    judge = _JUDGES.get(finding.rule)
    return judge(finding, place, known) if judge is not None else None


def _syntax(finding: Finding, place: Place, known: Known) -> Verdict | None:
    del known
    if _OUTSIDE_FUNCTION in finding.message:
        return None
    if "outside of an asynchronous function" in finding.message and not place.is_in_plain_function(finding.line):
        return None
    return Verdict(finding.message)


def _call(finding: Finding, place: Place, known: Known) -> Verdict | None:
    unknown = _NAMED_PARAMETER.search(finding.message)
    if unknown is not None and unknown[2] in known.parameters:
        name, function = unknown[1], unknown[2]
        takes = known.takes(function, place.before)
        return Verdict(f"{function} has no parameter `{name}`", nearest(name, takes, "it takes"))
    callee = _CALLEE.search(finding.message)
    hint = ""
    if callee is not None and callee[1] in known.parameters:
        takes = known.takes(callee[1], place.before)
        if finding.rule == "too-many-positional-arguments":
            hint = f"give every argument by name: {listed(takes)}"
        else:
            hint = f"it takes: {listed(takes)}"
    return Verdict(finding.message, hint)


def _argument(finding: Finding, place: Place, known: Known) -> Verdict | None:
    if place.text.startswith("**"):
        return None
    index = _INDEX.search(finding.message)
    if index is not None:
        is_certain = not known.has_unions and place.is_of_call(place.text)
        return _index(index[1], index[2], place) if is_certain else None
    in_key = _KEY_ARGUMENT.search(finding.message)
    if in_key is not None:
        key, expected, _, found = in_key.groups()
        if certainly_differ(found, expected, known.objects):
            return Verdict(f'"{key}" must be {expected}, not {found}', _await_hint(found))
        return None
    called = _ARGUMENT.search(finding.message)
    return _given(place, (called[1], called[2], called[3]), known) if called is not None else None


def _given(place: Place, called: tuple[str, str, str], known: Known) -> Verdict | None:
    function, expected, found = called
    if found.startswith("CoroutineType["):
        return Verdict(f"{function} is given a call that was not awaited", _AWAIT)
    if function not in known.parameters:
        return None
    name = re.match(r"\s*(\w+)\s*=(?!=)", place.text)
    parameter = name[1] if name is not None else "the argument"
    value = place.text[name.end() :].strip() if name is not None else place.text
    choices = known.choices.get((function, parameter), frozenset())
    if re.search(r"[\w)]\s*\[|\.get\(", value) and not place.is_of_call(value):
        return None
    if _certain(found, expected, value, known) or (choices and _not_chosen(found, choices)):
        hint = f"one of: {listed(map(repr, sorted(choices)))}" if choices else ""
        return Verdict(f"`{parameter}` of {function} must be {expected}, not {found}", hint)
    return None


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


def _index(key: str, container: str, place: Place) -> Verdict | None:
    asked = key.removeprefix("Literal[").removesuffix("]")
    if asked == key or not asked.startswith(('"', "'")):
        return None
    if container.startswith("list["):
        return Verdict(f"a list ({container}) has no key {asked}", "take one element, or loop over it")
    if container != "str":
        return None
    is_looped = f"for {place.text} in " in place.script
    hint = "a loop over a dict gives its keys" if is_looped else "it is the text itself"
    return Verdict(f"a str has no key {asked}", hint)


def _key(finding: Finding, place: Place, known: Known) -> Verdict | None:
    named = _KEY.search(finding.message)
    if named is None or named[2] not in known.keys:
        return None
    key, owner = named[1], named[2]
    if finding.rule == "invalid-typed-dict-key" and (
        may_exist(key, place)
        or not re.match(r"\s*\]", place.after)
        or any(key in known.keys[partner] for partner in known.partners.get(owner, ()))
    ):
        return None
    keys = known.keys[owner]
    return Verdict(f'{owner} has no key "{key}"', nearest(key, keys, "its keys", quote='"'))


def _missing_key(finding: Finding, place: Place, known: Known) -> Verdict | None:
    named = re.search(r"TypedDict `(\w+)`", finding.message)
    if named is None or named[1] not in known.keys or "**" in place.text:
        return None
    return Verdict(finding.message.replace("TypedDict ", "").replace(" constructor", ""))


def _member(finding: Finding, place: Place, known: Known) -> Verdict | None:
    tool = _TOOLS_MODULE.search(finding.message)
    if tool is not None:
        return unknown_tool(tool[1], tool[2], known)
    unresolved = _UNRESOLVED_TOOLS.search(finding.message)
    if unresolved is not None:
        return unknown_tool("tools", unresolved[1], known)
    named = _OBJECT.search(finding.message)
    if named is None:
        return None
    type_, attribute = named[1], named[2]
    if type_ in known.keys and attribute is not None:
        keys = known.keys[type_]
        hint = f'it is a dict: write ["{attribute}"]' if attribute in keys else f"it is a dict with {listed(keys)}"
        return Verdict(f"{type_} has no attribute `{attribute}`", hint)
    if type_ in ERROR_NAMES:
        return Verdict(finding.message, "it has server, tool, message, content and structured_content")
    return _on_kind(finding, type_, place, known)


def _on_kind(finding: Finding, type_: str, place: Place, known: Known) -> Verdict | None:
    """Judge a use of a value that its kind never allows."""
    if type_.startswith(("CoroutineType[", "Future[", "Task[")):
        return Verdict("the result of an `async` call is used without `await`", _AWAIT)
    if type_.startswith("<module 'tools"):
        return Verdict(finding.message, "call one of its functions")
    kinds = kinds_of(type_, known.objects)
    ends = {"not-subscriptable": "[", "missing-attribute": "."}.get(finding.rule)
    base = place.text.rpartition(ends)[0] if ends is not None else place.text
    if len(kinds.names) == 1 and kinds.names <= _SIMPLE and not kinds.unknown and place.is_of_call(base):
        return Verdict(finding.message)
    return None


def _operator(finding: Finding, place: Place, known: Known) -> Verdict | None:
    del place, known
    sides = _OPERATOR.search(finding.message)
    if sides is not None and any(side.startswith("CoroutineType[") for side in sides.groups()):
        return Verdict("the result of an `async` call is used without `await`", _AWAIT)
    return None


def _awaited(finding: Finding, place: Place, known: Known) -> Verdict | None:
    del place
    if finding.rule in {"unused-awaitable", "redundant-condition"}:
        return Verdict("an `async` call is not awaited", _AWAIT) if "CoroutineType[" in finding.message else None
    if "`def " in finding.message or "`async def " in finding.message:
        return Verdict("a function is awaited without being called", "add ()")
    named = re.match(r"`(.+)` is not awaitable", finding.message)
    if named is not None and kinds_of(named[1], known.objects).names <= _SIMPLE and "|" not in named[1]:
        kinds = kinds_of(named[1], known.objects)
        return None if kinds.unknown or not kinds.names else Verdict(f"{named[1]} is a value: nothing to await")
    return None


def _await_hint(found: str) -> str:
    return _AWAIT if found.startswith("CoroutineType[") else ""


_JUDGES: dict[str, Callable[[Finding, Place, Known], Verdict | None]] = {
    "import-not-found": _member,
    "invalid-argument-type": _argument,
    "invalid-await": _awaited,
    "invalid-syntax": _syntax,
    "invalid-typed-dict-key": _key,
    "missing-argument": _call,
    "missing-attribute": _member,
    "missing-typed-dict-key": _missing_key,
    "not-callable": _member,
    "not-iterable": _member,
    "not-subscriptable": _member,
    "redundant-condition": _awaited,
    "too-many-positional-arguments": _call,
    "unknown-argument": _call,
    "unknown-typed-dict-constructor-key": _key,
    "unresolved-reference": undefined,
    "unsupported-operator": _operator,
    "unused-awaitable": _awaited,
}
