"""The package `tools` as the type checker sees it: a stub module for each namespace, the errors beside them.

Above: check.py. Below: stubs. The text differs from what a model reads: no prose, and objects that take
other keys say so in a form that type checkers know and the guest's Python does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.stubs.stub_module import distinct_texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from codegen.stubs.stub import Stub

_ERRORS = """\
from typing import Any

class ToolError(Exception):
    server: str
    tool: str
    message: str
    content: list[Any]
    structured_content: Any
    def __init__(
        self,
        message: str = "",
        *,
        server: str | None = None,
        tool: str | None = None,
        content: list[Any] | None = None,
        structured_content: Any = None,
    ) -> None: ...

class ToolArgumentsError(ToolError, TypeError): ...
class ToolRefusedError(ToolError, PermissionError): ...
class ToolDescriptionRequired(ToolError): ...
class ToolNotFoundError(ToolError, AttributeError): ...
class ToolTimeoutError(ToolError, TimeoutError): ...
class ToolUnavailableError(ToolError, ConnectionError): ...
class ToolOutcomeUnknown(ToolError): ...
class ToolResultError(ToolError): ...
"""
_FUNCTIONS = """\
def display(*values: Any, mime_type: str | None = None) -> None: ...
async def read_bytes(block: dict[str, Any]) -> bytes: ...
async def extract(value: Any, expected: Any, instructions: str = "") -> Any: ...
"""
ERROR_NAMES = frozenset(line.split("(")[0][6:] for line in _ERRORS.splitlines() if line.startswith("class"))
_IMPORTED = "".join(f"from tools import {name} as {name}\n" for name in sorted(ERROR_NAMES))
_BUILTINS = f"from typing import Any\nimport tools as tools\n{_IMPORTED}{_FUNCTIONS}"


def tools_package(
    stubs: Iterable[Stub], listed: Mapping[str, Iterable[str]], unimported: Collection[str]
) -> dict[str, str]:
    """Return the files of the package by path; functions that are only listed take anything.

    Namespaces that are `unimported` are builtins too.
    """
    by_namespace: dict[str, list[Stub]] = {}
    for stub in stubs:
        by_namespace.setdefault(stub.namespace, []).append(stub)
    names = sorted({*by_namespace, *listed})
    imports = "".join(f"from . import {name} as {name}\n" for name in names)
    builtin = "".join(f"from tools import {name} as {name}\n" for name in names if name in unimported)
    files = {"tools/__init__.pyi": _ERRORS + _FUNCTIONS + imports, "__builtins__.pyi": _BUILTINS + builtin}
    for name in names:
        described = by_namespace.get(name, [])
        others = sorted(set(listed.get(name, ())) - {stub.function for stub in described})
        files[f"tools/{name}.pyi"] = _module(described, others)
    return files


def _module(described: list[Stub], others: list[str]) -> str:
    head = (
        "from typing import Any, Literal, NotRequired, Required, TypeAlias\nfrom typing_extensions import TypedDict\n"
    )
    placeholders = [f"async def {name}(**arguments: Any) -> Any: ...\n" for name in others]
    texts = distinct_texts((stub, stub.checked_source) for stub in described)
    return "\n".join([head, *texts, *placeholders])
