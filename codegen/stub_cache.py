"""Stubs that were generated before, by the digest of their tool.

Above: the package's public functions. Below: generate.py.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeAlias

from codegen.generate import build_stub

if TYPE_CHECKING:
    from codegen.stub import Stub
    from codegen.tool_spec import ToolSpec

_Key: TypeAlias = "tuple[str, str, str]"


class StubCache:
    """The stubs used last, in memory; safe to use from several threads."""

    def __init__(self, *, entries: int = 10_000) -> None:
        """Hold at most `entries` stubs."""
        self._entries = entries
        self._stubs: OrderedDict[_Key, Stub] = OrderedDict()
        self._lock = threading.Lock()

    def stub(self, spec: ToolSpec, *, namespace: str, function: str) -> Stub:
        """Return the stub of a tool, generated only if it is not here."""
        key = (spec.digest, namespace, function)
        with self._lock:
            found = self._stubs.get(key)
            if found is not None:
                self._stubs.move_to_end(key)
                return found
        built = build_stub(spec, namespace=namespace, function=function)
        with self._lock:
            self._stubs[key] = built
            while len(self._stubs) > self._entries:
                self._stubs.popitem(last=False)
        return built


_SHARED = StubCache()


def generate_stub(spec: ToolSpec, *, namespace: str, function: str) -> Stub:
    """Return the stub of a tool as `namespace.function`; one specification always gives one text."""
    return _SHARED.stub(spec, namespace=namespace, function=function)
