"""A core module, read as far as linking needs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import binary
from .binary import Reader
from .code import ADD, CONSTANT, END, FUNCTION_REFERENCE, GET_GLOBAL

if TYPE_CHECKING:
    from collections.abc import Callable

FUNCTION, TABLE, MEMORY, GLOBAL = 0, 1, 2, 3
_TYPES, _IMPORTS, _FUNCTIONS, _TABLES, _MEMORIES, _GLOBALS = 1, 2, 3, 4, 5, 6
_EXPORTS, _START, _ELEMENTS, _CODE, _DATA, _CUSTOM, _COUNT = 7, 8, 9, 10, 11, 0, 12
_FUNCTION_TYPE = 0x60
_FUNCTION_NAMES = 1
_OF_LIBRARIES = {"__memory_base", "__indirect_function_table"}
_NUMBER_32 = 0x7F


class UnsupportedModuleError(Exception):
    """A module is made in a way that is not known here."""


@dataclass(frozen=True, slots=True)
class Import:
    """What a module wants: from whom, by what name, of what kind; a function's type, the others' as it is written."""

    module: str
    name: str
    kind: int
    type: int | bytes


@dataclass(frozen=True, slots=True)
class Sum:
    """A number as libraries write it that do not know yet where they will lie."""

    number: int
    globals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Global:
    """A global, a number of 32 bits, and what it begins as."""

    is_mutable: bool
    value: Sum


@dataclass(frozen=True, slots=True)
class Elements:
    """Entries of the table: where they begin, and the functions' indices."""

    begin: Sum
    functions: list[int]


@dataclass(slots=True)
class Module:
    """The parts of a module; indices count its imports first, as in the format."""

    types: list[bytes] = field(default_factory=list)
    imports: dict[int, list[Import]] = field(default_factory=lambda: {kind: [] for kind in range(4)})
    functions: list[int] = field(default_factory=list)
    tables: list[bytes] = field(default_factory=list)
    globals: list[Global] = field(default_factory=list)
    exports: dict[str, tuple[int, int]] = field(default_factory=dict)
    elements: list[Elements] = field(default_factory=list)
    code: list[bytes] = field(default_factory=list)
    function_names: dict[int, str] = field(default_factory=dict)
    has_memory: bool = False
    has_data: bool = False

    @property
    def is_library(self) -> bool:
        """Whether it is told where in memory or in the table it lies."""
        placed = {one.name for kind in (TABLE, GLOBAL) for one in self.imports[kind]}
        return not placed.isdisjoint(_OF_LIBRARIES)

    def name_of(self, kind: int) -> str:
        """Return the name by which it exports its one table or memory."""
        return next(name for name, (exported, _) in self.exports.items() if exported == kind)


def read_module(data: bytes) -> Module:
    """Read a module.

    Raises:
        UnsupportedModuleError: It is made in a way that is not known here.
    """
    module = Module()
    for kind, content in binary.sections(data):
        reader = Reader(content)
        if kind == _START:
            raise UnsupportedModuleError("a start function")
        if kind == _CUSTOM:
            if reader.name() == "name":
                module.function_names = _names(reader)
        elif kind in _READERS:
            for _ in reader.times():
                _READERS[kind](reader, module)
        module.has_memory |= kind == _MEMORIES
        module.has_data |= kind in (_DATA, _COUNT)
    return module


def _function_type(reader: Reader) -> bytes:
    begin = reader.position
    if reader.byte() != _FUNCTION_TYPE:
        raise UnsupportedModuleError("a type that is none of a function")
    reader.block()
    reader.block()
    return reader.data[begin : reader.position]


def _read_import(reader: Reader, module: Module) -> None:
    origin, wanted, kind = reader.name(), reader.name(), reader.byte()
    if kind == FUNCTION:
        described: int | bytes = reader.number()
    elif kind == TABLE:
        described = _table_type(reader)
    elif kind == MEMORY:
        described = _limits(reader)
    elif kind == GLOBAL:
        described = reader.take(2)
    else:
        raise UnsupportedModuleError(f"an import of kind {kind}")
    module.imports[kind].append(Import(origin, wanted, kind, described))


def _limits(reader: Reader) -> bytes:
    begin = reader.position
    for _ in range(1 + (reader.byte() & 1)):
        reader.number()
    return reader.data[begin : reader.position]


def _table_type(reader: Reader) -> bytes:
    return bytes([reader.byte()]) + _limits(reader)


def _global(reader: Reader) -> Global:
    if reader.byte() != _NUMBER_32:
        raise UnsupportedModuleError("a global that is not a 32-bit number")
    return Global(reader.byte() == 1, _sum(reader))


def _sum(reader: Reader) -> Sum:
    number, found = 0, []
    while (instruction := reader.byte()) != END:
        if instruction == CONSTANT:
            number += reader.signed()
        elif instruction == GET_GLOBAL:
            found.append(reader.number())
        elif instruction != ADD:
            raise UnsupportedModuleError("a number that is computed by more than additions")
    return Sum(number, tuple(found))


def _elements(reader: Reader) -> Elements:
    flags = reader.number()
    if flags & 1 or (flags & 2 and reader.number() != 0):
        raise UnsupportedModuleError("entries of a table that are not put there at once")
    begin = _sum(reader)
    if flags & 2:
        reader.byte()
    if flags & 4:
        return Elements(begin, [_reference(reader) for _ in reader.times()])
    return Elements(begin, [reader.number() for _ in reader.times()])


def _reference(reader: Reader) -> int:
    if reader.byte() != FUNCTION_REFERENCE:
        raise UnsupportedModuleError("a table entry that is not a function")
    index = reader.number()
    reader.byte()
    return index


def _names(reader: Reader) -> dict[int, str]:
    while not reader.is_at_end():
        kind, inner = reader.byte(), Reader(reader.block())
        if kind == _FUNCTION_NAMES:
            return {inner.number(): inner.name() for _ in inner.times()}
    return {}


def _read_export(reader: Reader, module: Module) -> None:
    name = reader.name()  # first: Python evaluates the right side of an assignment before the left
    module.exports[name] = (reader.byte(), reader.number())


_READERS: dict[int, Callable[[Reader, Module], object]] = {
    _TYPES: lambda reader, module: module.types.append(_function_type(reader)),
    _IMPORTS: _read_import,
    _FUNCTIONS: lambda reader, module: module.functions.append(reader.number()),
    _TABLES: lambda reader, module: module.tables.append(_table_type(reader)),
    _GLOBALS: lambda reader, module: module.globals.append(_global(reader)),
    _EXPORTS: _read_export,
    _ELEMENTS: lambda reader, module: module.elements.append(_elements(reader)),
    _CODE: lambda reader, module: module.code.append(reader.block()),
}
