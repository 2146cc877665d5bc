"""The encoding that modules and components share: numbers, names, vectors and sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HEADER_BYTES = 8


class Reader:
    """Reads one value after the other."""

    def __init__(self, data: bytes) -> None:
        """Begin at the start of `data`."""
        self.data = data
        self.position = 0

    def is_at_end(self) -> bool:
        """Tell whether nothing is left."""
        return self.position >= len(self.data)

    def byte(self) -> int:
        """Read one byte."""
        self.position += 1
        return self.data[self.position - 1]

    def number(self) -> int:
        """Read an unsigned number."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:  # noqa: PLR2004  # the last byte of a number
                return value

    def signed(self) -> int:
        """Read a signed number."""
        begin = self.position
        value = self.number()
        bits = 7 * (self.position - begin)
        return value - (1 << bits) if value >> (bits - 1) else value

    def take(self, size: int) -> bytes:
        """Read so many bytes."""
        self.position += size
        return self.data[self.position - size : self.position]

    def block(self) -> bytes:
        """Read bytes that their number stands before."""
        return self.take(self.number())

    def name(self) -> str:
        """Read a name."""
        return self.block().decode()

    def times(self) -> range:
        """Read how long a vector is."""
        return range(self.number())


def number(value: int) -> bytes:
    """Write an unsigned number."""
    written = bytearray()
    while value >= 0x80:  # noqa: PLR2004  # more than fits into the last byte
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def signed(value: int) -> bytes:
    """Write a signed number."""
    written = bytearray()
    while not -0x40 <= value < 0x40:  # noqa: PLR2004  # more than fits into the last byte
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value & 0x7F)
    return bytes(written)


def block(data: bytes) -> bytes:
    """Write bytes with their number before them."""
    return number(len(data)) + data


def name(text: str) -> bytes:
    """Write a name."""
    return block(text.encode())


def vector(items: Iterable[bytes]) -> bytes:
    """Write items with their number before them."""
    listed = list(items)
    return number(len(listed)) + b"".join(listed)


def sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the sections of a module or a component, each with its id."""
    reader = Reader(data)
    reader.take(HEADER_BYTES)
    while not reader.is_at_end():
        yield reader.byte(), reader.block()


def section(kind: int, content: bytes) -> bytes:
    """Write a section."""
    return bytes([kind]) + block(content)
