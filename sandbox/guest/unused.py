"""What a script defines and never uses, told where that is all that the script was for: it has done nothing then.

Above: `script`. Read from the compiled code; what gets at a definition by another way than its name keeps this quiet.
"""

import inspect
import linecache
import types
from opcode import opmap

MAX_TOLD = 3

_BY_PYTHON = "__annotate__"
"""A function that Python makes of a module's annotations."""

_DEFINITIONS = (type, types.FunctionType)
_OTHER_WAYS = frozenset({"__main__", "dir", "eval", "exec", "getattr", "globals", "locals", "modules", "vars"})
_FLAG_BITS = {opmap["LOAD_NAME"]: 0, opmap["LOAD_GLOBAL"]: 1, opmap["LOAD_FROM_DICT_OR_GLOBALS"]: 0}
"""What loads a name, by how many bits of its argument say something other than which."""


def notes(modules: list, namespace: dict, filename: str) -> list[str]:
    """Return a line for each definition that nothing uses.

    A script that uses some of its definitions may have others: of these only `main` is told.
    """
    defined = {
        name: line
        for name, value in namespace.items()
        if isinstance(value, _DEFINITIONS) and name != _BY_PYTHON and (line := _line_of(value, filename))
    }
    if not defined:
        return []
    loaded, inside = set(), {}
    for module in modules:
        _read(module, defined, loaded, inside)
    everything = loaded.union(*inside.values())
    if not everything.isdisjoint(_OTHER_WAYS):
        return []
    uses_some = not loaded.isdisjoint(defined)
    unused = [
        name
        for name in defined
        if name not in loaded and not any(name in used for owner, used in inside.items() if owner != name)
    ]
    told = [name for name in unused if name == "main" or not uses_some]
    return [f"{filename}:{defined[name]}: {_said(name, namespace[name])}" for name in told[:MAX_TOLD]]


def _line_of(value, filename):
    """Return the line at which a definition of this script begins; None if decorated, as it may be kept elsewhere."""
    if isinstance(value, type):
        return getattr(value, "__firstlineno__", None) if value.__module__ == "__main__" else None
    if value.__code__.co_filename != filename:
        return None
    line = value.__code__.co_firstlineno
    return None if linecache.getline(filename, line).lstrip().startswith("@") else line


def _read(code, defined, loaded, inside):
    """Sort the names that code loads: into those of a definition's own code, and those of all other."""
    loaded.update(loaded_names(code))
    for part in code.co_consts:
        if not isinstance(part, types.CodeType) or part.co_name == _BY_PYTHON:
            continue
        if part.co_name in defined:
            own = inside.setdefault(part.co_name, set())
            _read(part, (), own, {})
        else:
            _read(part, defined, loaded, inside)


def loaded_names(code):
    """Yield the names that code loads, its functions left out; `dis` takes a millisecond for as much."""
    octets, high = code.co_code, 0
    for opcode, low in zip(octets[::2], octets[1::2], strict=True):
        if opcode in _FLAG_BITS:
            yield code.co_names[(high | low) >> _FLAG_BITS[opcode]]
        high = (high | low) << 8 if opcode == opmap["EXTENDED_ARG"] else 0


def _said(name, value):
    if isinstance(value, type):
        return f"the class {name} is defined and never used, so nothing in it was done"
    call = f"{name}({'...' if inspect.signature(value).parameters else ''})"
    call = f"await {call}" if inspect.iscoroutinefunction(value) else call
    return f"{name} is defined and never called, so nothing in it was done: end the script with `{call}`"
