"""Words mistakes in names (a server, a tool, a variable that is not there), with the name that was probably meant.

Above: judge.py. Below: mistake.py, known_names.py.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from codegen.checking.checker_input import ERROR_NAMES
from codegen.checking.mistake import Mistake, nearest
from codegen.near_names import near_name
from codegen.undefined_names import nowhere_hint, python_hint

if TYPE_CHECKING:
    from codegen.checking.known_names import Known
    from codegen.checking.language_server import Finding
    from codegen.checking.place import Place

_READ_ANNOTATIONS = (
    "__annotations__",
    "annotationlib",
    "extract",
    "get_annotations",
    "get_type_hints",
    "singledispatch",
)
_FROM_IMPORT = re.compile(r"\w+ +import +(\w+(?: *, *\w+)*)")
_UNDEFINED = re.compile(r"Name `(\w+)` used")


def undefined(finding: Finding, place: Place, known: Known) -> Mistake | None:
    """Judge a name that the script uses and nothing defines."""
    named = _UNDEFINED.search(finding.message)
    is_evaluated = not place.is_annotation or place.mentions(*_READ_ANNOTATIONS)
    if named is None or not is_evaluated or place.mentions("exec", "globals", "locals", "vars"):
        return None
    name = named[1]
    if declaration := place.declared_for(name):
        # The checker finds a variable outside of a function, unless the function assigns to it too.
        return Mistake(f"a function that assigns to `{name}` sees none outside", f"write `{declaration}` in it first")
    homes = [namespace for namespace, functions in known.functions.items() if name in functions]
    if name in known.functions:
        return Mistake(f"`{name}` is not imported", f"write `from tools import {name}`")
    if homes and name not in sys.stdlib_module_names:
        return Mistake(f"`{name}` is not imported", f"write `from tools.{homes[0]} import {name}`")
    if hint := python_hint(name, place.script):
        return Mistake(f"`{name}` is not {'imported' if 'import' in hint else 'defined'}", hint)
    near = nearest(name, sorted(place.names - {name}), "")
    return Mistake(f"`{name}` is not defined", near or nowhere_hint(name, place.script, known.functions))


def server_as_module(name: str, place: Place, known: Known) -> Mistake | None:
    """Judge a server that is imported as a module, where no module has its name.

    It is certain only if the guest found the server named, and the script does not also name it through `tools`.
    """
    if name not in known.unimported or place.mentions("tools"):
        return None
    imported = _FROM_IMPORT.match(place.rest_of_line)
    instead = f"from tools.{name} import {imported[1]}" if imported else f"from tools import {name}"
    return Mistake(f"there is no module `{name}`", f"write `{instead}` instead")


def unknown_tool(module: str, name: str, place: Place, known: Known) -> Mistake | None:
    """Judge the name of a server or tool that does not exist; `module` is `tools` or one of its modules."""
    if place.mentions("hasattr") or name.startswith("__"):
        return None  # Python's own, such as `__all__`, are not spelt out in stubs
    if module == "tools":
        meant = ERROR_NAMES.intersection(re.findall(r"\w+", place.rest_of_line.partition(" import ")[2]))
        if meant:
            return Mistake(f"there is no server `{name}` in tools", f"write `from tools import {min(meant)}`")
        return Mistake(f"there is no server `{name}` in tools", _instead_of_server(name, known))
    namespace = module.removeprefix("tools.")
    functions = known.functions.get(namespace, ())
    missing = f"there is no tool `{name}` in {module}"
    if name in ERROR_NAMES:
        return Mistake(missing, f"`{name}` itself needs no server and no import")
    if namespace in sys.stdlib_module_names and near_name(name, functions) is None:
        own = f"`from tools import {namespace} as {namespace}_server`"
        return Mistake(missing, f"for Python's own {namespace} beside the server write {own} and `import {namespace}`")
    return Mistake(missing, nearest(name, functions, "there are"))


def _instead_of_server(name: str, known: Known) -> str:
    near = near_name(name, [*known.functions, *ERROR_NAMES])
    if near in ERROR_NAMES:
        return f"did you mean `{near}`?"
    if near is None and name.endswith(("Error", "Exception")):
        return "write `ToolError`, the base of all errors of tools"
    return nearest(name, known.functions, "there are")
