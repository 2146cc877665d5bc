"""What to say of a name that is not there, and which was probably meant: a server, a tool, a key, a variable.

Above: verdicts.py. Below: known_names.py.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen.checking.checker_input import ERROR_NAMES
from codegen.near_names import near_name
from codegen.plain_text import few

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codegen.checking.known_names import Known
    from codegen.checking.script_text import Place
    from codegen.checking.type_checker import Finding

AWAIT = "write `await` before the call"
AWAIT_FIRST = "put `await` and the call in parentheses: `(await call)[...]`"
_UNDEFINED = re.compile(r"Name `(\w+)` used")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to say about a finding."""

    message: str
    hint: str = ""


def undefined(finding: Finding, place: Place, known: Known) -> Verdict | None:
    """Judge a name that the script uses and nothing defines."""
    named = _UNDEFINED.search(finding.message)
    if named is None or place.mentions("exec", "globals", "locals", "vars"):
        return None
    name = named[1]
    homes = [namespace for namespace, functions in known.functions.items() if name in functions]
    if name in known.functions or name in ERROR_NAMES:
        return Verdict(f"`{name}` is not imported", f"write `from tools import {name}`")
    if name == "tools" or name in sys.stdlib_module_names:
        return Verdict(f"`{name}` is not imported", f"write `import {name}`")
    if homes:
        return Verdict(f"`{name}` is not imported", f"write `from tools.{homes[0]} import {name}`")
    near = nearest(name, sorted(place.names - {name}), "")
    return Verdict(f"`{name}` is not defined", near or "each script starts anew: define what it uses")


def unknown_tool(module: str, name: str, place: Place, known: Known) -> Verdict | None:
    """Judge a server or tool that there is not; `module` is `tools` or one of its modules."""
    if place.mentions("hasattr"):
        return None
    if name.startswith("__"):
        return None  # Python's own, such as `__all__`, which stubs do not spell out
    if module == "tools":
        meant = ERROR_NAMES.intersection(re.findall(r"\w+", place.rest_of_line.partition(" import ")[2]))
        if meant:
            return Verdict(f"there is no server `{name}` in tools", f"write `from tools import {min(meant)}`")
        near = near_name(name, [*known.functions, *ERROR_NAMES])
        hint = f"did you mean `{near}`?" if near else f"there are: {listed(known.functions)}"
        return Verdict(f"there is no server `{name}` in tools", hint)
    namespace = module.removeprefix("tools.")
    functions = known.functions.get(namespace, ())
    missing = f"there is no tool `{name}` in {module}"
    if namespace in sys.stdlib_module_names and near_name(name, functions) is None:
        own = f"`from tools import {namespace} as {namespace}_server`"
        return Verdict(missing, f"for Python's own {namespace} beside the server write {own} and `import {namespace}`")
    return Verdict(missing, nearest(name, functions, "there are"))


def nearest(name: str, names: Iterable[str], otherwise: str, *, quote: str = "`") -> str:
    """Return the nearest of the names as a question, else all of them after a word."""
    choices = list(names)
    near = near_name(name, choices)
    if near is not None:
        return f"did you mean {quote}{near}{quote}?"
    return f"{otherwise}: {listed(choices)}" if otherwise else ""


def listed(names: Iterable[str], limit: int = 12) -> str:
    """Return names as a list that ends."""
    return few(names, limit) or "nothing"
