"""Generated types as Python objects for a runtime checker. Only for measuring: the product never loads them."""

from __future__ import annotations

import itertools
import sys
import types
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, TypeAdapter, with_config

from codegen import render_module

if TYPE_CHECKING:
    from codegen import Stub

_numbers = itertools.count()


def adapters(stub: Stub) -> tuple[dict[str, TypeAdapter[Any]], TypeAdapter[Any]]:
    """Return a strict checker for each JSON key of the input, and one for the result."""
    name = f"codegen_measured_{next(_numbers)}"
    module = types.ModuleType(name)
    sys.modules[name] = module
    # pydantic reads TypedDict of typing_extensions only, before Python 3.12
    text = render_module(stub.namespace, [stub]).replace("from typing import", "from typing_extensions import")
    exec(compile("from __future__ import annotations\n" + text, name, "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    function = getattr(module, stub.function)
    annotations = {key: eval(text, module.__dict__) for key, text in function.__annotations__.items()}  # noqa: S307
    inputs = {one.key: _adapter(annotations[one.name]) for one in stub.parameters}
    return inputs, _adapter(annotations["return"])


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    if isinstance(annotation, type) and hasattr(annotation, "__total__"):
        with_config(ConfigDict(strict=True))(annotation)
        return TypeAdapter(annotation)
    return TypeAdapter(annotation, config=ConfigDict(strict=True))
