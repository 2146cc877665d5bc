"""Decides which findings of the type checker are mistakes that stop a script, and words them for the model.

Above: check.py. Below: callbacks.py, missing_names.py, wrong_arguments.py. Only what is wrong in every run is kept: a
wrong, missing or ill-typed argument, an unknown result key, a missing `await`, an unknown tool. Everything that depends
on values the checker cannot see (a key added by the script, a dictionary built elsewhere, a value that may be None) is
dropped, and so is a mistake whose error the script catches by name, so that no correct script is stopped. Messages of
`ty` are matched as text; one that is not recognised is dropped too.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from codegen.checking.callbacks import called_back
from codegen.checking.checker_input import ERROR_NAMES
from codegen.checking.missing_names import server_as_module, undefined, unknown_tool
from codegen.checking.mistake import (
    AWAIT,
    AWAIT_FIRST,
    AWAIT_IN_ASYNC,
    NO_AWAIT_IN_LAMBDA,
    Mistake,
    listed,
    nearest,
)
from codegen.checking.place import may_exist
from codegen.checking.type_text import kinds_of
from codegen.checking.wrong_arguments import taken_for_object, wrong_argument, wrong_call

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from codegen.checking.known_names import Known
    from codegen.checking.language_server import Finding
    from codegen.checking.place import Place

_TOOLS_MODULE = re.compile(r"`(tools(?:\.\w+)?)` has no member `(\w+)`")
_UNRESOLVED = re.compile(r"Cannot resolve imported module `(tools\.)?(\w+)`")
_OBJECT = re.compile(r"bject of type `(.+?)` (?:has no attribute `(\w+)`|with no|is not|is always)")
_KEY = re.compile(r'key "(.*?)" for TypedDict `(\w+)`')
_NUMBERED = re.compile(r"TypedDict `(\w+)` can only be subscripted .* got key of type `(?:Literal\[-?\d+\]|slice\[)")
_METHOD = re.compile(r"`bound method (\w+)\.(\w+)\(")
_FOUND_METHOD = re.compile(r"Argument to .*`([\w.]+)` is incorrect: Expected `(\w+).*`, found `bound method ")
_OPERATOR = re.compile(r"between objects of type `(.+?)` and `(.+)`", re.DOTALL)
_NOT_UNPACKED = re.compile(r"\[|\w+\s*\)|[^*]*\sfor\s")
_REFUSED = re.compile(r" outside | prior to ")
"""What Python says of a statement that it has read and does not allow."""
_OUTSIDE_FUNCTION = "`return` statement outside of a function"
_OF_AWAIT = frozenset({AWAIT, AWAIT_FIRST})
_IS_ERROR = frozenset({"isError", "is_error"})
_STORES = (
    ("invalid-assignment", re.compile(r"TypedDict|Invalid subscript assignment")),
    ("invalid-argument-type", re.compile(r"Argument is incorrect: Expected")),
    ("unsupported-operator", re.compile(r"Operator `[|+]=`(?!.* and `bound method )")),
)
_ON_METHODS = frozenset(
    {"invalid-argument-type", "missing-attribute", "not-iterable", "not-subscriptable", "unsupported-operator"}
)
_SIMPLE = frozenset({"str", "int", "float", "bool", "list", "dict", "coroutine"})


def alters_results(finding: Finding) -> bool:
    """Tell whether a script stores a value of another type in what a tool returned, as scripts may.

    The checker keeps to the types that were declared, so what it finds in results afterwards means nothing.
    """
    return any(finding.rule == rule and pattern.search(finding.message) for rule, pattern in _STORES)


def is_unparsed(finding: Finding) -> bool:
    """Tell whether Python cannot read on at a finding, and not only refuses what stands there."""
    return finding.rule == "invalid-syntax" and _REFUSED.search(finding.message) is None


def mistake_in(finding: Finding, place: Place, known: Known) -> Mistake | None:
    """Return the mistake that a finding is, or None if that is not certain."""
    judge = _JUDGES.get(finding.rule)
    mistake = _method(finding, place, known) or (judge(finding, place, known) if judge is not None else None)
    if mistake is None:
        return None
    if mistake.hint in _OF_AWAIT:
        return _awaiting(mistake, finding, place)
    errors = _ERRORS.get(finding.rule)
    return None if errors is not None and place.is_caught(errors) else mistake


def _awaiting(mistake: Mistake, finding: Finding, place: Place) -> Mistake:
    """Return a mistake about `await` with what it takes where the call stands."""
    if place.is_in_lambda:
        return replace(mistake, hint=NO_AWAIT_IN_LAMBDA)
    if mistake.hint == AWAIT and place.is_in_plain_function(finding.line):
        return replace(mistake, hint=AWAIT_IN_ASYNC)
    return mistake


def _syntax(finding: Finding, place: Place, known: Known) -> Mistake | None:
    del known
    if _OUTSIDE_FUNCTION in finding.message:
        return None
    if "outside of an asynchronous function" in finding.message and not place.is_in_plain_function(finding.line):
        return None
    return Mistake(finding.message)


def _key(finding: Finding, place: Place, known: Known) -> Mistake | None:
    numbered = _NUMBERED.match(finding.message)
    if numbered is not None and numbered[1] in known.keys and not known.results_altered:
        return Mistake(
            f"{numbered[1]} is a dict and has no parts by number", f"its keys: {listed(known.keys[numbered[1]])}"
        )
    named = _KEY.search(finding.message)
    if named is None or named[2] not in known.keys:
        return None
    key, owner = named[1], named[2]
    if finding.rule == "unknown-typed-dict-constructor-key" and not place.is_given_to(known.parameters):
        return None
    if finding.rule == "invalid-typed-dict-key" and (
        known.results_altered
        or may_exist(key, place)
        or not re.match(r"\s*\]", place.after)
        or any(key in known.keys[partner] for partner in known.partners.get(owner, ()))
    ):
        return None
    keys = known.keys[owner]
    return Mistake(f'{owner} has no key "{key}"', nearest(key, keys, "its keys", quote='"'))


def _missing_key(finding: Finding, place: Place, known: Known) -> Mistake | None:
    named = re.search(r"TypedDict `(\w+)`", finding.message)
    if named is None or named[1] not in known.keys or "**" in place.text or place.is_joined:
        return None
    if not place.is_given_to(known.parameters):
        return None  # such as one that is put beside results, as the script likes
    return Mistake(finding.message.replace("TypedDict ", "").replace(" constructor", ""))


def _imported(finding: Finding, place: Place, known: Known) -> Mistake | None:
    named = _UNRESOLVED.search(finding.message)
    if named is None:
        return None
    return unknown_tool("tools", named[2], place, known) if named[1] else server_as_module(named[2], place, known)


def _member(finding: Finding, place: Place, known: Known) -> Mistake | None:
    tool = _TOOLS_MODULE.search(finding.message)
    if tool is not None:
        return unknown_tool(tool[1], tool[2], place, known)
    named = _OBJECT.search(finding.message)
    if named is None:
        return None
    type_, attribute = named[1], named[2]
    if type_ in known.keys and attribute is not None:
        return _attribute(type_, attribute, known)
    if type_ in ERROR_NAMES:
        return Mistake(finding.message, "it has server, tool, message, content and structured_content")
    return _on_kind(finding, type_, place, known)


def _attribute(type_: str, attribute: str, known: Known) -> Mistake | None:
    """Judge an attribute of an object that a tool returned; a TypedDict lacks some that every dict has."""
    if known.results_altered or hasattr(dict, attribute):
        return None
    keys = known.keys[type_]
    hint = f'it is a dict: write ["{attribute}"]' if attribute in keys else f"it is a dict; its keys: {listed(keys)}"
    if attribute in _IS_ERROR:
        hint = "a call that fails raises ToolError"
    return Mistake(f"{type_} has no attribute `{attribute}`", hint)


def _method(finding: Finding, place: Place, known: Known) -> Mistake | None:
    """Judge a method that every dict has, such as `items`, that is used as if it were a part of a result."""
    method = _METHOD.search(finding.message) if finding.rule in _ON_METHODS else None
    if method is None or method[1] not in known.keys or not hasattr(dict, method[2]) or known.results_altered:
        return None
    if finding.rule == "invalid-argument-type":
        given = _FOUND_METHOD.match(finding.message)
        if given is None or given[2] not in {"Iterable", "Sized"} or place.defines(given[1]):
            return None  # such as one that is called there
    name = method[2]
    hint = f'for its key write ["{name}"]' if name in known.keys[method[1]] else "add ()"
    return Mistake(f"{method[1]} is a dict, and `{name}` is a method of every dict", hint)


def _on_kind(finding: Finding, type_: str, place: Place, known: Known) -> Mistake | None:
    """Judge a use of a value that its kind never allows."""
    if type_.startswith(("CoroutineType[", "Future[", "Task[")):
        if "async-iterable" in finding.message:
            return Mistake("a call is no stream of pages", "`await` it for each page, and loop over its items by `for`")
        return _not_awaited(type_, place)
    if type_.startswith("<module 'tools"):
        namespace = type_.split("'")[1].removeprefix("tools.")
        hint = "call a function of one of its servers"
        if namespace in known.functions:
            functions = listed(known.functions[namespace])
            hint = f"call one of its functions as `await {namespace}.TOOL(argument=...)`: {functions}"
        return Mistake(finding.message, hint)
    if known.results_altered:
        return None
    kinds = kinds_of(type_, known.objects)
    ends = {"not-subscriptable": "[", "missing-attribute": "."}.get(finding.rule)
    base = place.text.rpartition(ends)[0] if ends is not None else place.text
    if len(kinds.names) == 1 and kinds.names <= _SIMPLE and not kinds.unknown and place.is_of_call(base):
        hint = "leave out `async`" if "async-iterable" in finding.message else ""
        if finding.rule == "missing-attribute":
            hint = _instead_of_attribute(finding, kinds.names, base, place)
        return Mistake(finding.message, hint)
    return None


def _not_awaited(type_: str, place: Place) -> Mistake:
    """Judge a use of an `async` call, or of a task, as if it were its result."""
    if place.is_awaited and type_.startswith("CoroutineType["):
        return Mistake("`await` takes what follows the call for a part of it", AWAIT_FIRST)
    if type_.startswith("Task["):
        return Mistake("a task is used as if it were its result", "`await` it, or take .result() once it is done")
    return Mistake("the result of an `async` call is used without `await`", AWAIT)


def _instead_of_attribute(finding: Finding, kind: AbstractSet[str], base: str, place: Place) -> str:
    """Return what to write instead of an attribute of a text, a dict or a list."""
    named = _OBJECT.search(finding.message)
    if "str" in kind:
        return taken_for_object(base, place)
    if "dict" in kind and named is not None:
        return f'it is a dict: write ["{named[2]}"]'
    return "take one element, or loop over it" if "list" in kind else ""


def _operator(finding: Finding, place: Place, known: Known) -> Mistake | None:
    del place, known
    sides = _OPERATOR.search(finding.message)
    if sides is not None and any(side.startswith("CoroutineType[") for side in sides.groups()):
        return Mistake("the result of an `async` call is used without `await`", AWAIT)
    return None


def _argument(finding: Finding, place: Place, known: Known) -> Mistake | None:
    return called_back(finding, place, known) or wrong_argument(finding, place, known)


def _no_overload(finding: Finding, place: Place, known: Known) -> Mistake | None:
    return called_back(finding, place, known) or _gathered(finding, place)


def _gathered(finding: Finding, place: Place) -> Mistake | None:
    """Judge a list or a generator of calls in the place of the calls."""
    given = place.text.partition("gather(")[2].lstrip()
    if "`gather`" not in finding.message or _NOT_UNPACKED.match(given) is None:
        return None
    return Mistake("asyncio.gather takes calls, not a list of them", "write `*` before it")


def _awaited(finding: Finding, place: Place, known: Known) -> Mistake | None:
    if finding.rule in {"unused-awaitable", "redundant-condition"}:
        is_coroutine = "CoroutineType[" in finding.message and not _is_handed_on(place)
        return Mistake("an `async` call is not awaited", AWAIT) if is_coroutine else None
    if "`def " in finding.message or "`async def " in finding.message:
        return Mistake("a function is awaited without being called", "add ()")
    named = re.match(r"`(.+)` is not awaitable", finding.message)
    if named is not None and kinds_of(named[1], known.objects).names <= _SIMPLE and "|" not in named[1]:
        kinds = kinds_of(named[1], known.objects)
        is_value = bool(kinds.names) and not kinds.unknown and place.is_of_call(place.text)
        return Mistake(f"{named[1]} is a value: nothing to await") if is_value else None
    return None


def _is_handed_on(place: Place) -> bool:
    """Tell whether the finding is at a variable that is awaited somewhere, or passed to what may await it."""
    name = place.text
    return name.isidentifier() and bool(re.search(rf"\bawait\s+{name}\b|[(,*]\s*{name}\s*[,)]", place.script))


_JUDGES: dict[str, Callable[[Finding, Place, Known], Mistake | None]] = {
    "import-not-found": _imported,
    "invalid-argument-type": _argument,
    "invalid-await": _awaited,
    "invalid-syntax": _syntax,
    "invalid-typed-dict-key": _key,
    "missing-argument": wrong_call,
    "missing-attribute": _member,
    "missing-module-member": _member,
    "missing-typed-dict-key": _missing_key,
    "no-matching-overload": _no_overload,
    "not-callable": _member,
    "not-iterable": _member,
    "not-subscriptable": _member,
    "redundant-condition": _awaited,
    "too-many-positional-arguments": wrong_call,
    "unknown-argument": wrong_call,
    "unknown-typed-dict-constructor-key": _key,
    "unresolved-reference": undefined,
    "unsupported-operator": _operator,
    "unused-awaitable": _awaited,
}
_TYPE = frozenset({"ToolArgumentsError", "TypeError"})
_MEMBER = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError", "ToolNotFoundError"})
_ERRORS = {
    "import-not-found": _MEMBER,
    "invalid-argument-type": _TYPE,
    "invalid-typed-dict-key": frozenset({"KeyError", "LookupError"}),
    "missing-argument": _TYPE,
    "missing-attribute": _MEMBER,
    "missing-module-member": _MEMBER,
    "missing-typed-dict-key": _TYPE,
    "no-matching-overload": _TYPE,
    "not-callable": _TYPE,
    "not-iterable": _TYPE,
    "not-subscriptable": _TYPE,
    "too-many-positional-arguments": _TYPE,
    "unknown-argument": _TYPE,
    "unknown-typed-dict-constructor-key": _TYPE,
    "unresolved-reference": frozenset({"NameError"}),
    "unsupported-operator": _TYPE,
}
"""The exceptions that a mistake of each kind raises at run time."""
