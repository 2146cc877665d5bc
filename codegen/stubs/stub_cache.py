"""Stubs that were generated before, kept by the digest of their tool in memory and on disk.

Above: the package's public functions. Below: generate.py and stub_files.py.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from codegen.stubs.generate import build_stub
from codegen.stubs.stub_files import StubFiles, default_folder

if TYPE_CHECKING:
    from codegen.stubs.stub import Stub
    from codegen.tool_spec import ToolSpec

_Key: TypeAlias = "tuple[str, str, str]"


class StubCache:
    """The stubs used last; safe to use from several threads."""

    def __init__(self, *, entries: int = 10_000, files: StubFiles | None = None) -> None:
        """Hold at most `entries` stubs in memory, and read and write `files` if given."""
        self._entries = entries
        self._files = files
        self._stubs: OrderedDict[_Key, Stub] = OrderedDict()
        self._lock = threading.Lock()

    def holds(self, spec: ToolSpec, *, namespace: str, function: str) -> bool:
        """Tell whether the stub of a tool is in memory."""
        return (spec.digest, namespace, function) in self._stubs

    def stub(self, spec: ToolSpec, *, namespace: str, function: str) -> Stub:
        """Return the stub of a tool; generates it only if it is neither in memory nor on disk."""
        key = (spec.digest, namespace, function)
        with self._lock:
            found = self._stubs.get(key)
            if found is not None:
                self._stubs.move_to_end(key)
                return found
        made = self._files.read(spec, namespace, function) if self._files is not None else None
        if made is None:
            made = build_stub(spec, namespace=namespace, function=function)
            if self._files is not None:
                self._files.write(made)
        with self._lock:
            self._stubs[key] = made
            while len(self._stubs) > self._entries:
                self._stubs.popitem(last=False)
        return made


def generate_stub(spec: ToolSpec, *, namespace: str, function: str) -> Stub:
    """Return the stub of a tool as `namespace.function`; one specification always gives one text.

    A new tool takes a few milliseconds; one seen before by this user comes from a private folder on disk.
    """
    return _shared().stub(spec, namespace=namespace, function=function)


def is_generated(spec: ToolSpec, *, namespace: str, function: str) -> bool:
    """Tell whether `generate_stub` has the stub in memory, so that it takes microseconds."""
    return _shared().holds(spec, namespace=namespace, function=function)


@cache
def _shared() -> StubCache:
    return StubCache(files=StubFiles(default_folder()))
