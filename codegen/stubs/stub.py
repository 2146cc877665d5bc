"""A generated stub: what the model reads, what the type checker reads and what the guest needs to call it.

Above: the package's public functions. Below: nothing but the specification.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codegen.schemas.generated_types import TypedCount
    from codegen.tool_spec import ToolSpec


@dataclass(frozen=True, slots=True)
class Parameter:
    """One keyword parameter: its Python name, the JSON key it is sent as, and whether it must be given."""

    name: str
    key: str
    required: bool


@dataclass(frozen=True, kw_only=True)
class Stub:
    """One tool as an `async def` with its types. All text in it is inert; none of it is run by the host."""

    spec: ToolSpec
    namespace: str
    function: str
    source: str
    checked_source: str
    imports: tuple[str, ...]
    types: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    accepts_extra: bool
    unwraps_result: bool
    degradations: tuple[str, ...]
    doc: str
    typed: TypedCount

    def manifest_entry(self) -> dict[str, Any]:
        """Return the guest's description of this function."""
        return {
            "described": True,
            "doc": self.doc,
            "parameters": [[one.name, one.key, one.required] for one in self.parameters],
            "accepts_extra": self.accepts_extra,
            "types": list(self.types),
        }
