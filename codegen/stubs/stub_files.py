"""Stubs as JSON files in a private folder of the user.

Above: stub_cache.py. Below: stub.py, source_check.py. A cache may be missing, full, read-only or damaged at any time:
every failure to read or write is the same as not having the file. A folder that others may write to is not used, and
text from a file is checked again before it is believed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_cache_path

from codegen.errors import UnexpectedSourceError
from codegen.schemas.generated_types import TypedCount
from codegen.stubs.source_check import check_stub_source
from codegen.stubs.stub import Parameter, Stub

if TYPE_CHECKING:
    from codegen.tool_spec import ToolSpec

_LARGEST_FILE = 1_000_000


def default_folder() -> Path:
    """Return where the stubs of this user are kept."""
    return user_cache_path("codemode-broker", appauthor=False) / "stubs"


class StubFiles:
    """One file for each stub, named by everything its content depends on."""

    def __init__(self, folder: Path) -> None:
        """Use `folder`, made with access for its owner only if it is missing."""
        self._folder = folder
        self._is_private: bool | None = None

    def read(self, spec: ToolSpec, namespace: str, function: str) -> Stub | None:
        """Return the stub of a tool, or None if there is no good file for it."""
        if not self._usable():
            return None
        try:
            text = self._path(spec, namespace, function).read_bytes()[:_LARGEST_FILE]
            return _stub(json.loads(text), spec, namespace, function)
        except (OSError, ValueError, KeyError, TypeError, UnexpectedSourceError, RecursionError):
            return None

    def write(self, stub: Stub) -> None:
        """Keep a stub; a file appears whole or not at all."""
        if not self._usable():
            return
        path = self._path(stub.spec, stub.namespace, stub.function)
        waiting = path.with_suffix(f".{os.getpid()}.part")
        try:
            waiting.write_text(json.dumps(_document(stub)), encoding="utf-8")
            waiting.replace(path)
        except OSError:
            waiting.unlink(missing_ok=True)

    def _path(self, spec: ToolSpec, namespace: str, function: str) -> Path:
        depends_on = f"{_generator()} {spec.digest} {namespace} {function}"
        return self._folder / f"{hashlib.sha256(depends_on.encode()).hexdigest()}.json"

    def _usable(self) -> bool:
        if self._is_private is None:
            self._is_private = _made_private(self._folder)
        return self._is_private


def _made_private(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return True
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


@cache
def _generator() -> str:
    """Return an id of everything that makes stubs: a digest of this package and the type generator's version."""
    return f"{digest_of_sources(Path(__file__).parents[1])} {version('datamodel-code-generator')}"


def digest_of_sources(package: Path) -> str:
    """Return a digest over the text of every module of a package."""
    whole = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def _document(stub: Stub) -> dict[str, Any]:
    return {
        "source": stub.source,
        "checked_source": stub.checked_source,
        "imports": stub.imports,
        "types": stub.types,
        "parameters": [[one.name, one.key, one.required] for one in stub.parameters],
        "accepts_extra": stub.accepts_extra,
        "unwraps_result": stub.unwraps_result,
        "degradations": stub.degradations,
        "doc": stub.doc,
        "typed": [stub.typed.said, stub.typed.typed],
    }


def _stub(document: Any, spec: ToolSpec, namespace: str, function: str) -> Stub:
    check_stub_source(document["source"])
    return Stub(
        spec=spec,
        namespace=namespace,
        function=function,
        source=document["source"],
        checked_source=document["checked_source"],
        imports=tuple(document["imports"]),
        types=tuple(document["types"]),
        parameters=tuple(Parameter(*one) for one in document["parameters"]),
        accepts_extra=document["accepts_extra"],
        unwraps_result=document["unwraps_result"],
        degradations=tuple(document["degradations"]),
        doc=document["doc"],
        typed=TypedCount(*document["typed"]),
    )
