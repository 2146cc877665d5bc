"""The JSON messages between guest and host, as this side reads and writes them.

Asked:   `{"script", "unimported"}`, which tools a script names; with these names also without an import
Start:   `{"script", "filename", "seed", "manifest", "kernel"}`, and after it the manifest's namespaces that the script
         does not name, which are read if it needs them; in a kernel all scripts but the first ignore the seed
Resume:  `[{"id", "value"} | {"id", "error": {"kind", "message", "details"}}]`
Step:    `{"calls": [{"id", "function", "line", "arguments"}], "cancelled": [id], "timer": seconds,
         "outcome": {"completed": value} | {"raised": {"type", "message", "traceback"}} | {"stopped": "memory_bytes"}}`

A step leaves out what it has nothing of, and begins with its calls or its outcome. `timer` is the monotonic time at
which the script next has something to do by itself; with one and no open call there is `line`, where the script waits.
The host checks every field again: a script can make this module send anything.
"""

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import io
import itertools
import json
import math
import pathlib
import uuid

MAX_BATCH = 4 * 1024 * 1024
"""Characters of a step that hands over more than one call; `limits.BATCH_BYTES` is the host's side of it."""

MAX_BATCH_CALLS = 5_000

MAX_DIGITS = 4_000
"""Digits of an integer that still crosses as a number; Python itself refuses to print more than 4,300."""

MAX_ITEMS = 500_000
"""Values that are taken of an iterator, as many as one message may hold: it may have no end."""

_LEAST_PLAIN, _MAX_PLAIN = -(1 << 63), 1 << 63
"""Integers between these need no look at their digits."""

_IN_ITSELF = "the value contains itself, so it cannot be written as JSON: leave that part out"

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)

# Bound here, because a script may replace what is in `json`; and without the Python that its `decode` and `encode` have
# around them, which takes longer than a small message.
_read = json.decoder.scanner.c_make_scanner(json.JSONDecoder())
_quote = json.encoder.c_encode_basestring_ascii
_write = json.encoder.c_make_encoder(
    None,
    _ENCODER.default,
    _quote,
    None,
    _ENCODER.key_separator,
    _ENCODER.item_separator,
    _ENCODER.sort_keys,
    _ENCODER.skipkeys,
    _ENCODER.allow_nan,
)


class NotJsonError(ValueError):
    """A value that cannot be written as JSON, whatever it is for."""


def decode(message: str) -> dict | list:
    """Read a message of the host's, which begins with its object or list."""
    return _read(message, 0)[0]


def decode_start(message: str) -> tuple[dict, str]:
    """Read the message that begins a run; return it and the text of what else may be called."""
    start, end = _read(message, 0)
    return start, message[end:]


def encode(message: dict | list) -> str:
    """Write a message whose values have been through `to_json`."""
    return "".join(_write(message, 0))


def encode_batch(step: dict, outgoing: list) -> tuple[str, list]:
    """Write a step with as many of the calls as one message may hold; return it and the calls left over."""
    if not outgoing:
        return encode(step), []
    if len(outgoing) == 1 and not step:
        return f'{{"calls":[{_call(*outgoing[0])}]}}', []
    texts, characters = [], 0
    for call in outgoing[:MAX_BATCH_CALLS]:
        try:
            text = _call(*call)
        except MemoryError:
            if not texts:
                raise
            break
        characters += len(text)
        if texts and characters > MAX_BATCH:
            break
        texts.append(text)
    left_over = outgoing[len(texts) :]
    if left_over:
        step = step | {"timer": 0}  # the host is asked to come back at once
    return f'{{"calls":[{",".join(texts)}]{f",{encode(step)[1:]}" if step else "}"}', left_over


def _call(number, function, line, arguments):
    return f'{{"id":{number},"function":{_quote(function)},"line":{line},"arguments":{"".join(_write(arguments, 0))}}}'


def are_plain(values: collections.abc.Iterable[object]) -> bool:
    """Tell whether `to_unicode_json` returns each of these as it is: most arguments need no converter."""
    for value in values:
        kind = type(value)
        if kind is str:
            if not value.isascii():
                return False
        elif kind is int:
            if not _LEAST_PLAIN < value < _MAX_PLAIN:
                return False
        elif kind is not bool and value is not None:
            return False
    return True


def to_json(value: object, unknown: collections.abc.Callable[[object], object]) -> object:
    """Turn a Python value into one that JSON can carry.

    Sequences, sets and iterators become lists, dataclasses and mappings objects with string keys, dates ISO 8601
    strings, `bytes` base64, `Decimal`, `Fraction`, `UUID` and paths strings, enums their values. NaN and the
    infinities, which JSON does not have, become the strings `"NaN"`, `"Infinity"` and `"-Infinity"`.

    Args:
        value: What to convert.
        unknown: Called with anything else; returns what stands in for it, or raises.

    Raises:
        NotJsonError: The value contains itself, or an iterator in it does not end.
    """
    return _Converter(unknown).convert(value)


def to_unicode_json(value: object, unknown: collections.abc.Callable[[object], object]) -> object:
    """Like `to_json`, for what leaves as UTF-8.

    Raises:
        NotJsonError: Also when a string holds half of a surrogate pair.
    """
    return _Converter(unknown, is_strict=True).convert(value)


class _Converter:
    def __init__(self, unknown, *, is_strict=False):
        self._unknown = unknown
        self._is_strict = is_strict
        self._open = set()

    def convert(self, value):
        kind = type(value)
        if kind is str:
            return self._string(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return self._integer(value)
        if kind is float:
            return value if math.isfinite(value) else _non_finite(value)
        if kind is dict or kind is list or kind is tuple:
            return self._container(value)
        return self._other(value)

    def _container(self, value):
        if id(value) in self._open:
            raise NotJsonError(_IN_ITSELF)
        self._open.add(id(value))
        try:
            if isinstance(value, collections.abc.Mapping):
                return {self._key(key): self.convert(item) for key, item in value.items()}
            return [self.convert(item) for item in value]
        finally:
            self._open.discard(id(value))

    def _key(self, key):
        if isinstance(key, enum.Enum):
            key = key.value
        if isinstance(key, str):
            return self._string(str.__str__(key))
        converted = self.convert(key)
        return converted if isinstance(converted, str) else encode(converted)

    def _string(self, value):
        if self._is_strict and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise NotJsonError(
                    f"character {error.start} is half of a surrogate pair, which cannot be written as UTF-8"
                ) from None
        return value

    def _integer(self, value):
        if value.bit_length() > MAX_DIGITS * 3.33:
            return f"<integer of {value.bit_length()} bits>"
        return int(value)

    def _other(self, value):
        if isinstance(value, enum.Enum):
            return self.convert(value.value)
        if isinstance(value, (str, collections.UserString)):
            return self._string(str.__str__(value) if isinstance(value, str) else str(value))
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return self.convert(float(value))
        if isinstance(value, collections.abc.Mapping):
            return self._container(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return self._nested(value, fields)
        if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
            return value.isoformat()
        if isinstance(value, (bytes, bytearray, memoryview)):
            return base64.b64encode(bytes(value)).decode("ascii")
        if isinstance(value, (datetime.timedelta, decimal.Decimal, fractions.Fraction, uuid.UUID, pathlib.PurePath)):
            return str(value)
        if isinstance(value, (collections.abc.Sequence, collections.abc.Set, collections.abc.ValuesView)):
            return self._container(value)
        if isinstance(value, collections.abc.Iterator) and not isinstance(value, io.IOBase):
            return self._container(_items(value))
        return self._unknown(value)

    def _nested(self, owner, fields):
        if id(owner) in self._open:
            raise NotJsonError(_IN_ITSELF)
        self._open.add(id(owner))
        try:
            return self.convert(fields)
        finally:
            self._open.discard(id(owner))


def _items(iterator):
    items = list(itertools.islice(iterator, MAX_ITEMS + 1))
    if len(items) > MAX_ITEMS:
        raise NotJsonError(
            f"an iterator gives more than {MAX_ITEMS} values: take a part of it, as itertools.islice does"
        )
    return items


def _non_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
