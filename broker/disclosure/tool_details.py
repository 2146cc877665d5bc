"""The full descriptions of tools, as text and as JSON.

Above: disclosure.py, which delivers them. Below: the stubs of codegen. The stub text is what a model reads and
the type checker checks; the JSON is what the server said, for clients that want no scripts.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codegen import render_module
from codegen.tool_spec import HINTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.authorization.outlook import Outlook
    from broker.tools.catalog import CatalogEntry
    from codegen import Stub, ToolSpec

_NOT_FINITE = re.compile("NaN|Infinity")


@dataclass(frozen=True, slots=True)
class ToolDetails:
    """The full descriptions of the tools that were asked for, and the reason for each that is missing.

    Attributes:
        source: Stub text, one module for each server; written for a model or a type checker.
        described: Qualified names of the tools that are described to the session from now on.
        unknown: Names that no tool has, each with the nearest ones.
        withdrawn: Those of them that a tool had earlier.
        left: Qualified names of tools that the page had no room for, in the order in which they were asked for.
        ambiguous: Bare names that tools of several servers have, each with their qualified names.
        unavailable: Names of tools that cannot be fetched now, each with what is wrong with the server.
        definitions: Where JSON was asked for, the definition of each described tool by its qualified name.
        retry_after_seconds: When to try again, where the session has fetched too often; 0 otherwise.
        changed: Of described tools whose earlier description had lapsed, what is different now.
        namespaces: What a script imports from `tools` for the described tools.
        outlooks: Described tools whose calls will certainly all be refused, or each be put to a person.
    """

    source: str
    described: tuple[str, ...]
    unknown: Mapping[str, tuple[str, ...]]
    ambiguous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    definitions: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    changed: Mapping[str, str] = field(default_factory=dict)
    retry_after_seconds: float = 0.0
    namespaces: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    outlooks: Mapping[str, Outlook] = field(default_factory=dict)


def stub_text(entries: Iterable[CatalogEntry]) -> str:
    """Return the stubs of these tools, one module for each server; a new tool may take a tenth of a second."""
    stubs: dict[str, list[Stub]] = {}
    for entry in entries:
        stubs.setdefault(entry.namespace, []).append(entry.stub())
    return "\n\n".join(render_module(namespace, stubs[namespace]) for namespace in sorted(stubs))


def definitions(entries: Sequence[CatalogEntry]) -> dict[str, dict[str, Any]]:
    """Return the definitions of these tools as MCP writes them, under their qualified names."""
    return {entry.qualified_name: _with_examples(entry.spec, entry.qualified_name) for entry in entries}


def described(said: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a definition as the resource of descriptions has it: under the name offered, its examples beside it.

    They are those that the server gives beside the definition, or else in the input schema.
    """
    schema = said["inputSchema"]
    examples = said.get("examples") or (schema.get("examples") if isinstance(schema, dict) else None)
    return {**said, "name": name} | ({"examples": examples} if isinstance(examples, list) and examples else {})


def described_text(entry: CatalogEntry) -> str:
    """Return the JSON text of a tool's description."""
    name = entry.qualified_name
    return json.dumps({name: described(_with_examples(entry.spec, name), name)}, ensure_ascii=False)


def definition(spec: ToolSpec, name: str) -> dict[str, Any]:
    """Return a tool's definition as MCP writes it, under the name by which it is offered."""
    said: dict[str, Any] = {"name": name}
    if spec.title:
        said["title"] = spec.title
    said |= {"description": spec.description, "inputSchema": spec.input_schema}
    if spec.output_schema is not None:
        said["outputSchema"] = spec.output_schema
    hints = hints_of(spec)
    return _as_json({**said, "annotations": hints} if hints else said)


def _with_examples(spec: ToolSpec, name: str) -> dict[str, Any]:
    said = definition(spec, name)
    return _as_json({**said, "examples": spec.examples}) if spec.examples else said


def _as_json(said: dict[str, Any]) -> dict[str, Any]:
    """Return a value as valid JSON: servers also write NaN, endless numbers and halves of surrogate pairs."""
    text = json.dumps(said, ensure_ascii=False)
    data = text.encode("utf-8", "replace")
    if not _NOT_FINITE.search(text) and data.decode() == text:
        return said
    carried: dict[str, Any] = json.loads(data, parse_constant=lambda _: None)
    return carried


def hints_of(spec: ToolSpec) -> dict[str, bool]:
    """Return what a server says of a tool's effects, as MCP writes it."""
    return {key: hint for key, attribute in HINTS.items() if (hint := getattr(spec.annotations, attribute)) is not None}
