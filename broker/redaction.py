"""Keeps the secrets of a config out of everything that leaves: results, output, errors, logs, records.

Above: whatever hands text on. Below: redacted_places.py. A secret is found as it is, in percent encoding (also in part,
and as in a form), in HTML, hexadecimal and base64 (wherever it stands in what was encoded), and across the pieces of a
stream. Whoever has it in other forms, as reversed or one letter at a time, gets it through: this guards against
accidents and plain tricks.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from broker.redacted_places import MARK, Unescaped, octets, overlap, places, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from codegen import ToolSpec

LEAST_ENCODED_CHARACTERS = 8
"""Encodings shorter than this are not looked for: they would be found in other text."""

MAX_LEARNT = 8
"""So many secrets of one source are kept out: tokens of now and of before, an access and a refresh token each."""

_MAX_STRINGS = 1_000_000
_IS_NUMBER = re.compile(r"[1-9][0-9]{0,999}")
_CUT_ESCAPE = re.compile(r"%[0-9A-Fa-f]?\Z")


class Redactor:
    """Replaces secrets in texts and JSON values. `Redactor(())` replaces nothing and costs nothing."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """Take the values to keep out; empty ones are left aside."""
        self._given = frozenset(secret for secret in secrets if secret)
        self._learnt: list[deque[str]] = []
        self._forms: dict[str, frozenset[str]] = {}
        self._prepare()

    def learner(self) -> Callable[[str], None]:
        """Return what one source tells its secrets to, as tokens that it fetches; the latest of them are kept out.

        Of any number of secrets each text would have to be searched for.
        """
        latest: deque[str] = deque(maxlen=MAX_LEARNT)
        self._learnt.append(latest)

        def learn(secret: str) -> None:
            if secret in latest:
                latest.remove(secret)
                latest.append(secret)
            elif secret:
                latest.append(secret)
                self._prepare()

        return learn

    def _prepare(self) -> None:
        known = self._given.union(*self._learnt)
        self._forms = {secret: self._forms.get(secret) or frozenset(_forms(secret)) for secret in known}
        self._literals = tuple(sorted(frozenset().union(*self._forms.values()), key=len, reverse=True))
        # What a secret is that is percent-encoded itself: it may have been encoded once more in part.
        plain = {decoded for secret in known if len(decoded := Unescaped(secret).octets) >= LEAST_ENCODED_CHARACTERS}
        data = (_data(secret).decode("latin-1") for secret in known)
        self._octets = tuple(plain.union(map(octets, known), data))
        self._numbers = frozenset(int(secret) for secret in known if _IS_NUMBER.fullmatch(secret))
        self.longest = max((3 * len(octets(form)) for form in self._literals), default=0)

    def __call__(self, text: str) -> str:
        """Return a text without the secrets."""
        # A search for a fixed text is many times faster than one for an expression, and needs none to be compiled.
        found = [place for literal in self._literals if literal in text for place in places(literal, text)]
        if "%" in text and self._octets:
            plain = Unescaped(text)
            found += plain.places(place for secret in self._octets for place in places(secret, plain.octets))
        return without(text, found) if found else text

    def value(self, value: Any) -> Any:
        """Return a JSON value without the secrets, in keys as well; the value itself where it holds none."""
        if not self._literals or not self._holds_any(value):
            return value
        return self._replaced(value)

    def stream(self) -> RedactedStream:
        """Return what redacts a text that comes in pieces."""
        return RedactedStream(self)

    def held_back(self, text: str) -> int:
        """Return how many characters at the end of a text may be the beginning of a secret."""
        tail = text[-self.longest :] if self.longest else ""
        held = max((overlap(tail, literal) for literal in self._literals), default=0)
        if "%" not in tail:
            return held
        cut = _CUT_ESCAPE.search(tail)
        plain = Unescaped(tail if cut is None else tail[: cut.start()])
        begins = [len(tail) - held] if cut is None else [len(tail) - held, cut.start()]
        size = len(plain.octets)
        common = max((overlap(plain.octets, secret) for secret in self._octets), default=0)
        begins += [begin for begin, _ in plain.places([(size - common, size)] if common else [])]
        return len(tail) - min(begins)

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
        """Tell whether a number is a secret of digits, also as a negative one or with a point."""
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) in self._numbers

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
    texts = [spec.title, spec.description, spec.input_schema, spec.output_schema, spec.examples]
    clean = redact.value(texts)
    if clean is texts:
        return spec
    title, description, input_schema, output_schema, examples = clean
    return replace(
        spec,
        title=title,
        description=description,
        input_schema=input_schema,
        output_schema=output_schema,
        examples=examples,
    )


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


def _data(secret: str) -> bytes:
    """Return the bytes of a secret; a variable of the system may be none in UTF-8, and its text stands for others."""
    try:
        return secret.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return secret.encode("utf-8", "surrogatepass")


def _forms(secret: str) -> Iterator[str]:
    data = _data(secret)
    yield secret
    yield data.decode("utf-8", "replace")
    encoded = [
        quote(data, safe=""),
        quote(data),
        quote_plus(data),
        html.escape(secret),
        html.escape(secret, quote=False),
    ]
    encoded += [data.hex(), data.hex().upper(), json.dumps(secret)[1:-1]]
    # In base64 a byte's place decides how it is written: three ways, of which the ends depend on what is beside.
    for skipped in range(3):
        whole = base64.b64encode(b"\0" * skipped + data).decode("ascii").rstrip("=")
        begins = (skipped * 8 + 5) // 6
        ends = (skipped + len(data)) * 8 // 6
        core = whole[begins:ends]
        encoded += [core, core.translate(str.maketrans("+/", "-_"))]
    yield from (form for form in encoded if len(form) >= LEAST_ENCODED_CHARACTERS)


def _leaves(value: Any) -> Iterator[str | int]:
    """Yield texts and whole numbers."""
    stack = [value]
    count = 0
    while stack and count < _MAX_STRINGS:
        item = stack.pop()
        count += 1
        if isinstance(item, str | int):
            yield item
        elif isinstance(item, dict):
            stack += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            stack += item
