"""The findings of earlier and running type checks, shared by checks of the same text.

Above: type_checker.py. Findings depend only on the script and the package beside it. Agents often run a script again,
and many run the same one, so equal checks ask the checker once.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from codegen.checking.language_server import Finding

_Found: TypeAlias = "tuple[Finding, ...]"

# A hostile script has thousands of findings, or long ones; those are not kept.
_MAX_CHARACTERS_KEPT = 10_000
_CHARACTERS_BESIDE_A_MESSAGE = 100


class FindingCache:
    """The findings of the scripts that were checked last; safe to use from several threads."""

    def __init__(self, ask: Callable[[str, Mapping[str, str]], Iterable[Finding]], *, entries: int = 256) -> None:
        """Hold the findings of at most `entries` scripts; `ask` says what the checker finds."""
        self._asked = ask
        self._entries = entries
        self._futures: OrderedDict[bytes, Future[_Found]] = OrderedDict()
        self._lock = threading.Lock()

    def findings(self, script: str, package: Mapping[str, str]) -> _Found:
        """Return what the checker says; callers with the same text wait for one run of it.

        Raises:
            CheckerError: As in `ask`. Everyone who waits gets the error; it is not kept.
        """
        key = _key(script, package)
        with self._lock:
            future = self._futures.get(key)
            is_first = future is None
            if future is None:
                future = self._futures[key] = Future()
                while len(self._futures) > self._entries:
                    self._futures.popitem(last=False)
            else:
                self._futures.move_to_end(key)
        if is_first:
            self._ask(key, future, script, package)
        return future.result()

    def _ask(self, key: bytes, future: Future[_Found], script: str, package: Mapping[str, str]) -> None:
        try:
            future.set_result(tuple(self._asked(script, package)))
        except BaseException as error:  # noqa: BLE001  # raised again by `future.result`, here and where others wait
            future.set_exception(error)
        if future.exception() is not None or _size(future.result()) > _MAX_CHARACTERS_KEPT:
            with self._lock:
                self._futures.pop(key, None)


def _size(found: _Found) -> int:
    """Return about how many characters findings take."""
    return sum(_CHARACTERS_BESIDE_A_MESSAGE + len(one.message) for one in found)


def _key(script: str, package: Mapping[str, str]) -> bytes:
    """Return a hash of the whole input, with the length of each text, so that none runs into the next."""
    whole = hashlib.sha256()
    for text in (script, *(part for item in sorted(package.items()) for part in item)):
        encoded = text.encode("utf-8", "surrogatepass")
        whole.update(len(encoded).to_bytes(8, "big") + encoded)
    return whole.digest()
