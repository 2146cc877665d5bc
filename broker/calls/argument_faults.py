"""Whether the arguments of a call are such as its tool takes, decided before anybody is asked about it. Pure.

Above: tool_calls.py, `codemode policy test`. Below: json_schema.py, and the stub, whose parameters are what a tool
names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.calls.call_failures import bad_arguments, no_parameter
from broker.calls.json_schema import first_fault
from codegen.schemas.keywords import properties_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.tools.catalog import CatalogEntry
    from sandbox import Failed


def fault_of(arguments: Mapping[str, Any], entry: CatalogEntry) -> Failed | None:
    """Return how a call with these arguments fails; None where they fit."""
    fault = first_fault(arguments, entry.spec.input_schema)
    if fault is not None:
        return bad_arguments(entry, fault)
    unnamed = unnamed_arguments(arguments, entry)
    return no_parameter(entry, unnamed) if unnamed else None


def unnamed_arguments(arguments: Mapping[str, Any], entry: CatalogEntry) -> list[str]:
    """Return arguments that the tool does not name, where it takes no others; a question would not show their like.

    The guest checks its stubs by the same rule; this is for what did not come through them.
    """
    unnamed = arguments.keys() - properties_of(entry.spec.input_schema).keys()
    if not unnamed:
        return []
    stub = entry.stub()
    named = {parameter.key for parameter in stub.parameters}
    return [] if stub.accepts_extra else sorted(unnamed - named)
