"""Function bodies: finds the few instructions that name something of their module, and passes over all others.

Knows the instructions that compilers of C and Rust emit for this guest; any other one is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .binary import Reader

CALL, CALL_INDIRECT, GET_GLOBAL, SET_GLOBAL, FUNCTION_REFERENCE, CONSTANT, ADD, END = (
    0x10,
    0x11,
    0x23,
    0x24,
    0xD2,
    0x41,
    0x6A,
    0x0B,
)
_BRANCH_TABLE = 0x0E
_BLOCKS = (0x02, 0x03, 0x04)

_NUMBER = rb"[\x80-\xff]*+[\x00-\x7f]"
_PASSED_OVER = re.compile(
    rb"(?:"
    rb"[\x00\x01\x05\x0b\x0f\x1a\x1b\x45-\xc4\xd1]"  # without operands
    rb"|[\x0c\x0d\x20-\x22\x41\x42]" + _NUMBER +  # branches, locals, integers
    rb"|[\x28-\x3e]" + _NUMBER + _NUMBER +  # loads and stores
    rb"|[\x02-\x04][\x40\x7c-\x7f]"  # blocks of at most one result
    rb"|[\x3f\x40]\x00|\x43.{4}|\x44.{8}|\xfc[\x00-\x07]|\xfc\x0a\x00\x00|\xfc\x0b\x00|\x1c\x01[\x7c-\x7f]|\xd0\x70"
    rb")*+",
    re.DOTALL,
)  # fmt: skip


class UnknownCodeError(Exception):
    """A function holds an instruction that is not known here."""


@dataclass(frozen=True, slots=True)
class Use:
    """An instruction that names something: where it stands, which it is, and the index it names."""

    begin: int
    end: int
    instruction: int
    index: int


def uses(body: bytes) -> list[Use]:
    """Return what a function body, its locals included, names of its module.

    Raises:
        UnknownCodeError: It holds an instruction that is not known here.
    """
    reader = Reader(body)
    for _ in reader.times():
        reader.number()
        reader.byte()
    found: list[Use] = []
    while True:
        passed = _PASSED_OVER.match(body, reader.position)
        reader.position = begin = passed.end() if passed else reader.position
        if reader.is_at_end():
            return found
        instruction = reader.byte()
        if instruction == _BRANCH_TABLE:
            for _ in range(reader.number() + 1):
                reader.number()
        elif instruction in (CALL, GET_GLOBAL, SET_GLOBAL, FUNCTION_REFERENCE, *_BLOCKS):
            index = _type_of_block(reader) if instruction in _BLOCKS else reader.number()
            found.append(Use(begin, reader.position, instruction, index))
        elif instruction == CALL_INDIRECT:
            index = reader.number()
            if reader.number() != 0:
                raise UnknownCodeError("a call through a second table")
            found.append(Use(begin, reader.position, instruction, index))
        else:
            raise UnknownCodeError(f"instruction {instruction:#x}")


def _type_of_block(reader: Reader) -> int:
    index = reader.signed()
    if index < 0:
        raise UnknownCodeError("a block with a result of another type")
    return index
