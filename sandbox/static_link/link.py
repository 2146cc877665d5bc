"""Makes one module of the one that holds memory and the libraries around it.

Memory and its content stay in their own module, because other modules need it before the libraries are there. Of
functions only those go in that can be called. A global that no function changes is a number.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from . import binary
from .binary import Reader
from .code import CALL, CALL_INDIRECT, CONSTANT, END, FUNCTION_REFERENCE, GET_GLOBAL, SET_GLOBAL, Use, uses
from .component import Definition
from .module import FUNCTION, GLOBAL, MEMORY, TABLE, Module, Sum, UnsupportedModuleError

if TYPE_CHECKING:
    from collections.abc import Iterable

OUTSIDE = "outside"
"""What all imports of the linked module are imported from."""

_HEADER = b"\0asm\1\0\0\0"
_NUMBER_32 = 0x7F
_BITS_32 = 1 << 32
_OTHER_TABLE, _OWN_TABLE = 0, 1
_NUMBER = rb"[\x80-\xff]*[\0-\x7f]"
# A function that only passes arguments on to an entry of the table: which ones, the entry, its type.
_THROUGH_TABLE = re.compile(rb"\0((?:\x20[\0-\x7f])*)\x41(%b)\x11(%b)\0\x0b" % (_NUMBER, _NUMBER))


@dataclass(frozen=True, slots=True)
class Part:
    """A module that is linked, and what its instance is given by name."""

    module: Module
    instance: Definition


@dataclass(frozen=True, slots=True)
class Own:
    """A function or a global that a part defines, by its index among those the part defines."""

    part: int
    index: int


Found: TypeAlias = "Own | Definition"


class Linking:
    """Links parts, the first of which holds memory and table. What they use of other modules is imported."""

    def __init__(self, parts: list[Part]) -> None:
        """Find out what is used by what."""
        self._parts = parts
        self._of_instance = {part.instance: number for number, part in enumerate(parts)}
        self._table = self._entries()
        self._imports: dict[Definition, int] = {}
        self._functions: dict[Own, int] = {}
        self._uses: dict[Own, list[Use]] = {}
        self._changed: set[Own] = set()
        self._exported: dict[str, Found] = {}
        self._types: dict[bytes, int] = {}

    def export(self, name: str, taken: Definition) -> None:
        """Export, as `name`, a function that is taken out of one of the parts."""
        if taken.of is None or taken.sort != FUNCTION:
            raise UnsupportedModuleError(f"{taken.name} is taken out of a library")
        self._exported[name] = self._exported_by(taken.of, taken.name, FUNCTION)

    def check_shared(self, taken: Definition) -> None:
        """Refuse a global of the first part that other modules use too and somebody may change: each has its own."""
        found = self._found(0, GLOBAL, self._parts[0].module.exports[taken.name][1])
        if isinstance(found, Definition) or self._parts[found.part].module.globals[found.index].is_mutable:
            raise UnsupportedModuleError(f"{taken.name}, which may change, is used outside of the libraries")

    def linked(self, needed_entries: Iterable[int]) -> tuple[bytes, list[Definition]]:
        """Return the module and the functions it imports; `needed_entries` are put into the old table as well."""
        self._reach()
        own = sorted(self._functions, key=lambda one: (one.part, one.index))
        self._functions = {one: len(self._imports) + number for number, one in enumerate(own)}
        changed = {
            one: number for number, one in enumerate(sorted(self._changed, key=lambda one: (one.part, one.index)))
        }
        code = [binary.block(self._rewritten(one, changed)) for one in own]
        kinds = [binary.number(self._type(one)) for one in own]
        imported = self._imports_section()
        content = {
            1: binary.vector(self._types),
            2: imported,
            3: binary.vector(kinds),
            4: binary.vector([self._parts[0].module.tables[0]]),
            6: binary.vector(self._global(one) for one in changed),
            7: binary.vector(self._export(name) for name in self._exported),
            9: binary.vector([*self._own_elements(), *map(self._other_element, needed_entries)]),
            10: binary.vector(code),
            0: binary.name("name") + binary.section(1, self._names()),
        }
        sections = [binary.section(kind, content) for kind, content in content.items()]
        return _HEADER + b"".join(sections), list(self._imports)

    def entry_of(self, taken: Definition) -> int:
        """Return the entry of the table that a function of the first part calls through."""
        found = self._found(0, FUNCTION, self._parts[0].module.exports[taken.name][1])
        entry = self._entry_behind(found)
        if entry is None:
            raise UnsupportedModuleError(f"{taken.name} does more than call through the table")
        return entry

    def _reach(self) -> None:
        """Find every function that can be called, and every global that one of them changes."""
        waiting = [*self._exported.values(), *self._table.values()]
        while waiting:
            found = waiting.pop()
            if isinstance(found, Definition):
                self._imports.setdefault(found, len(self._imports))
            elif found not in self._functions:
                self._functions[found] = 0
                self._uses[found] = uses(self._body(found))
                for use in self._uses[found]:
                    if use.instruction in (CALL, FUNCTION_REFERENCE):
                        waiting.append(self._function(found.part, use.index))
                    elif use.instruction == SET_GLOBAL:
                        self._changed.add(self._own_global(found.part, use.index))

    def _rewritten(self, function: Own, changed: dict[Own, int]) -> bytes:
        body = self._body(function)
        written, end = [], 0
        for use in self._uses[function]:
            written += [body[end : use.begin], self._instruction(function.part, use, changed)]
            end = use.end
        return b"".join([*written, body[end:]])

    def _instruction(self, part: int, use: Use, changed: dict[Own, int]) -> bytes:
        head = bytes([use.instruction])
        if use.instruction in (CALL, FUNCTION_REFERENCE):
            return head + binary.number(self._number(self._function(part, use.index)))
        if use.instruction in (GET_GLOBAL, SET_GLOBAL):
            found = self._own_global(part, use.index)
            return head + binary.number(changed[found]) if found in changed else _constant(self._value(found))
        kind = self._kind(self._parts[part].module.types[use.index])
        if use.instruction == CALL_INDIRECT:
            return head + binary.number(kind) + binary.number(_OWN_TABLE)
        return head + binary.signed(kind)

    def _function(self, part: int, index: int) -> Found:
        return self._found(part, FUNCTION, index, is_followed=True)

    def _own_global(self, part: int, index: int) -> Own:
        found = self._found(part, GLOBAL, index)
        if isinstance(found, Own):
            return found
        raise UnsupportedModuleError("a global of another module")

    def _found(self, part: int, kind: int, index: int, *, is_followed: bool = False) -> Found:
        """Return who defines something that a part names, beyond tables too if `is_followed`."""
        imports = self._parts[part].module.imports[kind]
        if index < len(imports):
            wanted = imports[index]
            given = self._parts[part].instance.arguments[wanted.module]
            return self._exported_by(given, wanted.name, kind, is_followed=is_followed)
        found = Own(part, index - len(imports))
        entry = self._entry_behind(found) if is_followed and kind == FUNCTION else None
        return found if entry is None else self._table[entry]

    def _entry_behind(self, found: Found) -> int | None:
        """Return the entry of the table that a function of the first part calls through, if it does nothing else."""
        through = _THROUGH_TABLE.fullmatch(self._body(found)) if isinstance(found, Own) and found.part == 0 else None
        if through is None or isinstance(found, Definition):
            return None
        passed, entry, kind = through.groups()
        module = self._parts[0].module
        is_whole = module.types[Reader(kind).number()] == module.types[module.functions[found.index]]
        is_in_order = passed[1::2] == bytes(range(len(passed) // 2))
        return Reader(entry).signed() if is_whole and is_in_order else None

    def _exported_by(self, instance: Definition, name: str, kind: int, *, is_followed: bool = True) -> Found:
        part = self._of_instance.get(instance)
        if part is not None:
            exported_kind, index = self._parts[part].module.exports[name]
            if exported_kind != kind:
                raise UnsupportedModuleError(f"{name} is of another kind")
            return self._found(part, kind, index, is_followed=is_followed)
        given = instance.arguments[name]
        if given.of in self._of_instance:
            return self._exported_by(given.of, given.name, kind, is_followed=is_followed)
        return given

    def _entries(self) -> dict[int, Found]:
        """Return the table, once all parts have put their functions into it."""
        filled = [
            (self._sum(number, elements.begin) + place, number, index)
            for number, part in enumerate(self._parts)
            for elements in part.module.elements
            for place, index in enumerate(elements.functions)
        ]
        return {entry: self._found(part, FUNCTION, index) for entry, part, index in filled}

    def _sum(self, part: int, computed: Sum) -> int:
        added = sum(self._value(self._own_global(part, index)) for index in computed.globals)
        return (computed.number + added) % _BITS_32

    @functools.cache  # noqa: B019  # a linking lives for one build
    def _value(self, found: Own) -> int:
        return self._sum(found.part, self._parts[found.part].module.globals[found.index].value)

    def _body(self, function: Own) -> bytes:
        return self._parts[function.part].module.code[function.index]

    def _number(self, found: Found) -> int:
        return self._imports[found] if isinstance(found, Definition) else self._functions[found]

    def _type(self, function: Own) -> int:
        module = self._parts[function.part].module
        return self._kind(module.types[module.functions[function.index]])

    def _kind(self, written: bytes) -> int:
        return self._types.setdefault(written, len(self._types))

    def _imports_section(self) -> bytes:
        kinds = self._import_types()
        functions = [
            binary.name(OUTSIDE)
            + binary.name(str(number))
            + bytes([FUNCTION])
            + binary.number(self._kind(kinds[found]))
            for found, number in self._imports.items()
        ]
        memory = next(iter(self._parts[-1].module.imports[MEMORY])).type
        table = self._parts[0].module.tables[0]
        if not isinstance(memory, bytes):
            raise UnsupportedModuleError("a memory without limits")
        shared = [
            binary.name(OUTSIDE) + binary.name("table") + bytes([TABLE]) + table,
            binary.name(OUTSIDE) + binary.name("memory") + bytes([MEMORY]) + memory,
        ]
        return binary.vector([*functions, *shared])

    def _import_types(self) -> dict[Definition, bytes]:
        """Return the types of imported functions, as the parts say that import them."""
        found: dict[Definition, bytes] = {}
        for number, part in enumerate(self._parts):
            for index, wanted in enumerate(part.module.imports[FUNCTION]):
                given = self._found(number, FUNCTION, index)
                if isinstance(given, Definition) and isinstance(wanted.type, int):
                    found[given] = part.module.types[wanted.type]
        return found

    def _global(self, found: Own) -> bytes:
        return bytes([_NUMBER_32, 1]) + _constant(self._value(found)) + bytes([END])

    def _export(self, name: str) -> bytes:
        return binary.name(name) + bytes([FUNCTION]) + binary.number(self._number(self._exported[name]))

    def _own_elements(self) -> Iterable[bytes]:
        """Write the table, a run of entries at a time."""
        entries = sorted(self._table)
        begin = 0
        for place in range(1, len(entries) + 1):
            if place == len(entries) or entries[place] != entries[place - 1] + 1:
                functions = [self._table[entry] for entry in entries[begin:place]]
                yield self._element(_OWN_TABLE, entries[begin], functions)
                begin = place

    def _other_element(self, entry: int) -> bytes:
        return self._element(_OTHER_TABLE, entry, [self._table[entry]])

    def _element(self, table: int, begin: int, functions: list[Found]) -> bytes:
        place = _constant(begin) + bytes([END])
        numbers = binary.vector(binary.number(self._number(found)) for found in functions)
        return bytes([2, table]) + place + bytes([0]) + numbers

    def _names(self) -> bytes:
        """Write the functions' names: what a trap means is told by them."""
        named = []
        for one, number in self._functions.items():
            module = self._parts[one.part].module
            name = module.function_names.get(len(module.imports[FUNCTION]) + one.index)
            if name is not None:
                named.append(binary.number(number) + binary.name(name))
        return binary.vector(named)


def _constant(value: int) -> bytes:
    return bytes([CONSTANT]) + binary.signed(value - _BITS_32 if value >= _BITS_32 >> 1 else value)
