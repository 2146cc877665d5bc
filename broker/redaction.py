"""Keeps the secrets of a config out of everything that leaves: results, output, errors, logs, records.

Above: whatever hands text on. Below: nothing of the package. A secret is found as it is, in percent encoding (also in
part), hexadecimal and base64 (wherever it stands in what was encoded), and across the pieces of a stream. Whoever has
it in other forms, as reversed or one letter at a time, gets it through: this guards against accidents and plain tricks.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codegen import ToolSpec

MARK = "[redacted]"
LEAST_ENCODED_CHARACTERS = 8
"""Encodings shorter than this are not looked for: they would be found in other text."""

_MOST_STRINGS = 1_000_000
_NUMBER_BITS = 4_096
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_CUT_ESCAPE = re.compile(r"%[0-9A-Fa-f]?\Z")


class Redactor:
    """Replaces secrets in texts and JSON values. `Redactor(())` replaces nothing and costs nothing."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """Take the values to keep out; empty ones are left aside."""
        self._known = frozenset(secret for secret in secrets if secret)
        self._compile()

    def learn(self, secret: str) -> None:
        """Keep one more value out from now on, as a token that was just fetched."""
        if secret and secret not in self._known:
            self._known |= {secret}
            self._compile()

    def _compile(self) -> None:
        known = sorted(self._known, key=len, reverse=True)
        literals = {form for secret in known for form in _forms(secret)}
        self._literals = tuple(sorted(literals, key=len, reverse=True))
        self._expression = re.compile("|".join(map(re.escape, self._literals))) if literals else None
        # Only where a text has a percent sign: slower, since each character may be written in two ways.
        mixed = "|".join("".join(map(_either_way, secret)) for secret in known)
        self._percent = re.compile(mixed) if mixed else None
        self._numbers = frozenset(secret for secret in known if secret.isdecimal() and secret.isascii())
        self.longest = max((3 * len(form.encode()) for form in literals), default=0)

    def __call__(self, text: str) -> str:
        """Return a text without the secrets."""
        if self._expression is None or self._percent is None:
            return text
        # A search for a fixed text is many times faster than one for an expression.
        if any(literal in text for literal in self._literals):
            text = self._expression.sub(MARK, text)
        return self._percent.sub(MARK, text) if "%" in text else text

    def value(self, value: Any) -> Any:
        """Return a JSON value without the secrets, in keys as well; the value itself where it holds none."""
        if self._expression is None or not self._holds_any(value):
            return value
        return self._replaced(value)

    def stream(self) -> RedactedStream:
        """Return what redacts a text that comes in pieces."""
        return RedactedStream(self)

    def held_back(self, text: str) -> int:
        """Return how many characters at the end of a text may be the beginning of a secret."""
        tail = text[-self.longest :] if self.longest else ""
        last = tail.rfind("%")
        decoded = _Decoded(tail) if last >= 0 else None
        for start in range(len(tail)):
            if self._is_beginning(tail[start:]):
                return len(tail) - start
            if decoded is not None and start <= last and self._is_beginning(decoded.rest(start)):
                return len(tail) - start
        return 0

    def _is_beginning(self, rest: str) -> bool:
        return any(literal.startswith(rest) for literal in self._literals)

    def _holds_any(self, value: Any) -> bool:
        texts: list[str] = []
        for one in _leaves(value):
            if isinstance(one, str):
                texts.append(one)
            elif self._numbers and self._is_number(one):
                return True
        # All at once: a search in each of many short texts takes ten times as long.
        text = "\n".join(texts)
        return self(text) != text

    def _is_number(self, value: object) -> bool:
        """Tell whether a number is a secret of digits."""
        is_number = isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < _NUMBER_BITS
        return bool(self._numbers) and is_number and str(value) in self._numbers

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if self._is_number(value):
            return MARK
        if isinstance(value, list):
            return [self._replaced(item) for item in value]
        if isinstance(value, dict):
            return {self._replaced(key): self._replaced(item) for key, item in value.items()}
        return value


def redacted_definition(spec: ToolSpec, redact: Redactor) -> ToolSpec:
    """Return a tool's definition without the secrets that its server has put there; itself where it has not."""
    texts = [spec.title, spec.description, spec.input_schema, spec.output_schema]
    clean = redact.value(texts)
    if clean is texts:
        return spec
    title, description, input_schema, output_schema = clean
    return replace(spec, title=title, description=description, input_schema=input_schema, output_schema=output_schema)


class RedactedStream:
    """A text in pieces: what may be the beginning of a secret waits for the next piece."""

    def __init__(self, redactor: Redactor) -> None:
        """Start with nothing held back."""
        self._redactor = redactor
        self._rest = ""

    def add(self, piece: str) -> str:
        """Return what can be handed on after one more piece."""
        if not self._redactor.longest:
            return piece
        text = self._redactor(self._rest + piece)
        held = self._redactor.held_back(text)
        self._rest = text[len(text) - held :]
        return text[: len(text) - held]

    def end(self) -> str:
        """Return what is left."""
        rest, self._rest = self._rest, ""
        return self._redactor(rest)


class _Decoded:
    """A text with what is percent-encoded in it decoded, once for the rests from all its places."""

    def __init__(self, text: str) -> None:
        self._text = text
        plain: list[str] = []
        # For each character: how many from it on stay as they are, and where the rest goes on in what is plain.
        self._places: list[tuple[int, int]] = []
        while len(self._places) < len(text):
            escape = _ESCAPE.match(text, len(self._places))
            self._places.append((0, len(plain)))
            plain.append(text[len(self._places) - 1] if escape is None else chr(int(escape[1], 16)))
            if escape is not None:
                self._places += [(2, len(plain)), (1, len(plain))]
        self._plain = _CUT_ESCAPE.sub("", "".join(plain))

    def rest(self, start: int) -> str:
        """Return what follows from a place on, without an escape that is cut short at the end."""
        kept, at = self._places[start]
        return self._text[start : start + kept] + self._plain[at:]


def _forms(secret: str) -> Iterator[str]:
    data = secret.encode("utf-8", "replace")
    yield secret
    encoded = [quote(secret, safe=""), quote(secret), data.hex(), data.hex().upper(), json.dumps(secret)[1:-1]]
    # In base64 a byte's place decides how it is written: three ways, of which the ends depend on what is beside.
    for skipped in range(3):
        whole = base64.b64encode(b"\0" * skipped + data).decode("ascii").rstrip("=")
        begins = (skipped * 8 + 5) // 6
        ends = (skipped + len(data)) * 8 // 6
        core = whole[begins:ends]
        encoded += [core, core.translate(str.maketrans("+/", "-_"))]
    yield from (form for form in encoded if len(form) >= LEAST_ENCODED_CHARACTERS)


def _either_way(character: str) -> str:
    octets = "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))
    return f"(?:{re.escape(character)}|(?i:{octets}))"


def _leaves(value: Any) -> Iterator[str | int]:
    """Yield texts and whole numbers."""
    stack = [value]
    count = 0
    while stack and count < _MOST_STRINGS:
        item = stack.pop()
        count += 1
        if isinstance(item, str | int):
            yield item
        elif isinstance(item, dict):
            stack += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            stack += item
