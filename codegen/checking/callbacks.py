"""Words the mistake of giving a tool to a function of Python that calls it: by position, and without `await`.

Above: judge.py. Below: mistake.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codegen.checking.mistake import NO_AWAIT_IN_LAMBDA, Mistake

if TYPE_CHECKING:
    from codegen.checking.known_names import Known
    from codegen.checking.language_server import Finding
    from codegen.checking.place import Place

_CALLS_FUNCTION = re.compile(
    r"Argument to [\w ]+ `(map|reduce)(?:\.__new__)?` is incorrect: Expected `\(.*found `def ", re.DOTALL
)
_TAKES_FUNCTION = re.compile(r"No overload of [\w ]+ `(?:list\.)?(sorted|max|min|sort|filter)(?:\.__new__)?`")
_GIVEN_FUNCTION = re.compile(
    r"(?:\bfilter\s*\(|\bkey\s*=)\s*(lambda\b[^:\n]{0,100}:\s*)?((?:\w+\s*\.\s*)*\w+)\s*([,)(])"
)
_GATHERED = re.compile(r"\bgather\s*\(\s*\*\s*map\s*\(\s*[\w.]+\Z")


def called_back(finding: Finding, place: Place, known: Known) -> Mistake | None:
    """Judge a tool that a function of Python is to call for the script, as `sorted` does with its `key`."""
    called, takes = _CALLS_FUNCTION.match(finding.message), _TAKES_FUNCTION.match(finding.message)
    if called is not None:
        return _calling(called[1], place.text, place, known)
    given = _GIVEN_FUNCTION.search(place.text) if takes is not None else None
    if takes is None or given is None or (given[1] is not None) != (given[3] == "("):
        return None
    mistake = _calling(takes[1], given[2], place, known)
    if mistake is not None and given[1] is not None:
        return Mistake("the result of an `async` call is used without `await`", NO_AWAIT_IN_LAMBDA)
    return mistake


def _calling(caller: str, function: str, place: Place, known: Known) -> Mistake | None:
    """Judge what another function is to call, if it is a tool's: that takes no argument by position."""
    *path, name = (part.strip() for part in function.split("."))
    by_namespace = known.parameters.get(name, {})
    imported = rf"\bfrom\s+tools\s*\.\s*(\w+)\s+import\b[^\n]{{0,300}}\b{name}\b"
    namespaces = path[-1:] or (re.findall(imported, place.script)[-1:] if by_namespace else [])
    if place.defines(caller) or place.defines(name) or by_namespace.keys().isdisjoint(namespaces):
        return None
    parameters = by_namespace[namespaces[0]]
    loop = f"{'.'.join([*path, name])}({f'{parameters[0]}=one' if parameters else ''}) for one in ..."
    written = f"*({loop})" if _GATHERED.search(place.before) else f"[await {loop}]"
    return Mistake(f"{caller} would call {name} by position, and cannot await it", f"call it yourself: {written}")
