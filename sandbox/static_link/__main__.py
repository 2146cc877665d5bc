"""`python -m static_link COMPONENT LINKED` writes a component that does the same, its libraries in one module."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .component import (
    CORE_MODULE,
    FUNCTION,
    GLOBAL,
    INSTANCE,
    MEMORY,
    MODULE,
    TABLE,
    Definition,
    UnsupportedComponentError,
    instance_from,
    instance_of,
    read_component,
    taken_out,
    write_component,
)
from .link import OUTSIDE, Linking, Part
from .module import read_module

if TYPE_CHECKING:
    from collections.abc import Iterable


def link(data: bytes) -> bytes:
    """Return the component with its libraries linked.

    Raises:
        UnsupportedComponentError: It is made in a way that is not known here; so do the modules beside this one.
    """
    definitions = read_component(data)
    parts = [
        Part(read_module(one.of.module), one) for one in definitions if one.sort == INSTANCE and one.of is not None
    ]
    base = next(part for part in parts if part.module.has_memory)
    libraries = [part for part in parts if part.module.is_library]
    if any(part.module.has_data for part in libraries):
        raise UnsupportedComponentError("a library with data of its own")
    linking = Linking([base, *libraries])
    inside = {part.instance for part in libraries}
    # Making an instance may do something by itself, such as to fill a table.
    roots = [one for one in definitions if one.sort is None or (one.sort == INSTANCE and one.of is not None)]
    kept = _used_by([one for one in roots if one not in inside], inside)
    moved = {one: str(number) for number, one in enumerate(kept) if one.of in inside}
    for one, name in moved.items():
        linking.export(name, one)
    for one in kept:
        if one.of is base.instance and one.sort == GLOBAL:
            linking.check_shared(one)
    entries = {linking.entry_of(one) for one in kept if one.of is base.instance and one.sort == FUNCTION}
    module, functions = linking.linked(sorted(entries))
    given = {str(number): function for number, function in enumerate(functions)}
    given["table"] = taken_out(TABLE, base.instance, base.module.name_of(TABLE))
    given["memory"] = taken_out(MEMORY, base.instance, base.module.name_of(MEMORY))
    code = Definition(CORE_MODULE, [module], MODULE, module=module)
    outside = instance_from(given)
    instance = instance_of(code, {OUTSIDE: outside})
    replaced = {one: taken_out(FUNCTION, instance, name) for one, name in moved.items()}
    kept |= _used_by(functions, inside)
    if not inside.isdisjoint(kept):
        raise UnsupportedComponentError("a library that another module takes whole")
    waiting = [code, given["table"], given["memory"], outside, instance, *replaced.values()]
    written: list[Definition] = []
    for one in definitions:
        if one not in kept or one in moved:
            continue
        if not replaced.keys().isdisjoint(one.used()):
            one.parts = [replaced.get(part, part) if isinstance(part, Definition) else part for part in one.parts]
            written, waiting = written + waiting, []  # as soon as it is needed
        written.append(one)
    return write_component(data, written)


def _used_by(roots: Iterable[Definition], inside: set[Definition]) -> dict[Definition, None]:
    """Return all that these use, themselves included; not what lies inside of the libraries."""
    found: dict[Definition, None] = {}
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found[one] = None
            if one.of not in inside:
                waiting += one.used()
    return found


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(link(Path(sys.argv[1]).read_bytes()))
