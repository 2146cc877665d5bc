"""A component as a list of definitions, each with what it uses of those before it.

Only what belongs to core WebAssembly is taken apart: modules, their instances, what is taken out of these, and
functions on their way into and out of the component. Everything else refers to none of that and stays as it is.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import binary
from .binary import HEADER_BYTES, Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

CORE_MODULE, CORE_INSTANCE, ALIAS, CANONICAL, CUSTOM = 1, 2, 6, 8, 0
FUNCTION, TABLE, MEMORY, GLOBAL, MODULE, INSTANCE = 0, 1, 2, 3, 0x11, 0x12
"""Sorts of core definitions, as they are written."""

_CORE = 0
_OF_CORE_INSTANCE = 1
_NAMES = "component-name"
_LIFT, _LOWER, _RESOURCE_FUNCTIONS = 0, 1, (2, 3, 4)
_MEMORY_OPTION, _FUNCTION_OPTIONS, _ENCODINGS = 3, (4, 5), (0, 1, 2)


class UnsupportedComponentError(Exception):
    """A component is made in a way that is not known here."""


@dataclass(eq=False, repr=False, slots=True)
class Definition:
    """One definition.

    Attributes:
        section: Id of the section it stands in.
        parts: How it is written: bytes, and between them the definitions it uses.
        sort: What it defines, of core WebAssembly; None for something else.
        module: The code, of a module.
        arguments: By name, what an instance of a module is given, or what an instance made of parts consists of.
        of: The module of an instance, or the instance that this is taken out of.
        name: By which it is taken out.
    """

    section: int
    parts: list[bytes | Definition] = field(default_factory=list)
    sort: int | None = None
    module: bytes = b""
    arguments: dict[str, Definition] = field(default_factory=dict)
    of: Definition | None = None
    name: str = ""

    def used(self) -> list[Definition]:
        """Return the definitions that this one uses."""
        return [part for part in self.parts if isinstance(part, Definition)]


def read_component(data: bytes) -> list[Definition]:
    """Read a component; names of its definitions are left out.

    Raises:
        UnsupportedComponentError: It is made in a way that is not known here.
    """
    read = _Reading()
    for section, content in binary.sections(data):
        if section == CORE_MODULE:
            read.add(Definition(section, [content], MODULE, module=content))
        elif section in read.readers:
            reader = Reader(content)
            for _ in reader.times():
                read.readers[section](reader)
        elif section != CUSTOM or Reader(content).name() != _NAMES:
            read.add(Definition(section, [content]))
    return read.definitions


def write_component(header: bytes, definitions: Iterable[Definition]) -> bytes:
    """Write a component; each definition stands after all that it uses."""
    indices: dict[Definition, int] = {}
    counts: defaultdict[int, int] = defaultdict(int)
    written = [header[:HEADER_BYTES]]
    for definition in definitions:
        content = b"".join(
            part if isinstance(part, bytes) else binary.number(indices[part]) for part in definition.parts
        )
        if definition.section in (CORE_INSTANCE, ALIAS, CANONICAL):
            content = binary.vector([content])
        written.append(binary.section(definition.section, content))
        if definition.sort is not None:
            indices[definition] = counts[definition.sort]
            counts[definition.sort] += 1
    return b"".join(written)


def taken_out(sort: int, instance: Definition, name: str) -> Definition:
    """Return what takes a function, a memory or the like out of an instance."""
    parts: list[bytes | Definition] = [bytes([_CORE, sort, _OF_CORE_INSTANCE]), instance, binary.name(name)]
    return Definition(ALIAS, parts, sort, of=instance, name=name)


def instance_of(module: Definition, arguments: dict[str, Definition]) -> Definition:
    """Return an instance of a module."""
    parts: list[bytes | Definition] = [b"\0", module, binary.number(len(arguments))]
    for name, instance in arguments.items():
        parts += [binary.name(name) + bytes([INSTANCE]), instance]
    return Definition(CORE_INSTANCE, parts, INSTANCE, arguments=arguments, of=module)


def instance_from(exports: dict[str, Definition]) -> Definition:
    """Return an instance that is made of other definitions."""
    parts: list[bytes | Definition] = [b"\1" + binary.number(len(exports))]
    for name, one in exports.items():
        parts += [binary.name(name) + bytes([one.sort or 0]), one]
    return Definition(CORE_INSTANCE, parts, INSTANCE, arguments=exports)


class _Reading:
    """Reads section by section and counts what is defined."""

    def __init__(self) -> None:
        self.definitions: list[Definition] = []
        self.readers = {CORE_INSTANCE: self._instance, ALIAS: self._alias, CANONICAL: self._canonical}
        self._spaces: defaultdict[int, list[Definition]] = defaultdict(list)

    def add(self, definition: Definition) -> None:
        self.definitions.append(definition)
        if definition.sort is not None:
            self._spaces[definition.sort].append(definition)

    def _instance(self, reader: Reader) -> None:
        if reader.byte() == 0:
            module = self._spaces[MODULE][reader.number()]
            named = [(reader.name(), reader.byte(), reader.number()) for _ in reader.times()]
            self.add(instance_of(module, {name: self._spaces[sort][index] for name, sort, index in named}))
        else:
            named = [(reader.name(), reader.byte(), reader.number()) for _ in reader.times()]
            self.add(instance_from({name: self._spaces[sort][index] for name, sort, index in named}))

    def _alias(self, reader: Reader) -> None:
        begin = reader.position
        sort = reader.byte()
        core_sort = reader.byte() if sort == _CORE else None
        target = reader.byte()
        if target == _OF_CORE_INSTANCE and core_sort is not None:
            instance = self._spaces[INSTANCE][reader.number()]
            self.add(taken_out(core_sort, instance, reader.name()))
            return
        if core_sort is not None:
            raise UnsupportedComponentError("something of core WebAssembly that comes from elsewhere")
        reader.number()
        reader.block() if target == 0 else reader.number()
        self.add(Definition(ALIAS, [reader.data[begin : reader.position]]))

    def _canonical(self, reader: Reader) -> None:
        kind = reader.byte()
        parts: list[bytes | Definition] = [bytes([kind])]
        if kind in _RESOURCE_FUNCTIONS:
            self.add(Definition(CANONICAL, [*parts, binary.number(reader.number())], FUNCTION))
        elif kind == _LOWER and reader.byte() == 0:
            parts += [b"\0" + binary.number(reader.number()), *self._options(reader)]
            self.add(Definition(CANONICAL, parts, FUNCTION))
        elif kind == _LIFT and reader.byte() == 0:
            parts += [b"\0", self._spaces[FUNCTION][reader.number()], *self._options(reader)]
            self.add(Definition(CANONICAL, [*parts, binary.number(reader.number())]))
        else:
            raise UnsupportedComponentError(f"a function of kind {kind}")

    def _options(self, reader: Reader) -> list[bytes | Definition]:
        count = reader.number()
        parts: list[bytes | Definition] = [binary.number(count)]
        for _ in range(count):
            option = reader.byte()
            parts.append(bytes([option]))
            if option == _MEMORY_OPTION:
                parts.append(self._spaces[MEMORY][reader.number()])
            elif option in _FUNCTION_OPTIONS:
                parts.append(self._spaces[FUNCTION][reader.number()])
            elif option not in _ENCODINGS:
                raise UnsupportedComponentError(f"an option {option}")
        return parts
