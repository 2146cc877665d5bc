"""Checks whether a tool takes the arguments of a call, before anybody is asked about the call. Pure.

Above: callees.py, `codemode policy test`. Below: json_schema.py, and the stub, whose parameters are what a tool names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.calls.call_failures import bad_arguments, told_faults
from broker.calls.json_schema import faults
from codegen.schemas.keywords import properties_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.tools.catalog import CatalogEntry
    from sandbox import Failed


_TOLD = 3
"""Faults of one call; a model corrects all that it is told of at once."""


def fault_of(arguments: Mapping[str, Any], entry: CatalogEntry) -> Failed | None:
    """Return the failure of a call with these arguments; None if they fit."""
    told = faults_of(arguments, entry)
    return bad_arguments(entry, told) if told else None


def faults_of(arguments: Mapping[str, Any], entry: CatalogEntry) -> list[str]:
    """Return what is wrong with the arguments of a call, in words for a model."""
    unnamed = _unnamed(arguments, entry)
    named = {name: value for name, value in arguments.items() if name not in unnamed} if unnamed else arguments
    found = faults(named, entry.spec.input_schema, most=_TOLD)
    return told_faults(entry, found, unnamed) if found or unnamed else []


def _unnamed(arguments: Mapping[str, Any], entry: CatalogEntry) -> list[str]:
    """Return arguments that the tool does not name, if it takes no others.

    The guest's stubs check the same; this is for calls that did not come through a stub.
    """
    unnamed = arguments.keys() - properties_of(entry.spec.input_schema).keys()
    if not unnamed:
        return []
    stub = entry.stub()
    named = {parameter.key for parameter in stub.parameters}
    return [] if stub.accepts_extra else sorted(unnamed - named)
