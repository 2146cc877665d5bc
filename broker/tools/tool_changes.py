"""Describes how a tool's definition has changed, in sentences for a person or a model.

Above: the catalog, which notices, and the sessions in which a description lapses. Below: codegen's
`ToolSpec`. Both definitions were written by the server; names of parameters are made inert and bounded.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from broker.texts import description_texts
from codegen.plain_text import few, one_line
from codegen.schemas.keywords import properties_of, required_of
from codegen.tool_spec import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codegen import ToolSpec

_NAMES = 5
_NAME_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class ToolChange:
    """One tool before and after a new listing of its server; `now` is None when it has gone."""

    before: ToolSpec
    now: ToolSpec | None

    @property
    def text(self) -> str:
        """What changed, on one line."""
        return what_changed(self.before, self.now)


def what_changed(before: ToolSpec, now: ToolSpec | None) -> str:
    """Return the differences between two definitions, on one line; empty when there is none."""
    if now is None:
        return description_texts.NOT_OFFERED
    said = [
        name
        for name, one, other in (
            ("its title", before.title, now.title),
            ("its description", before.description, now.description),
        )
        if one != other
    ]
    said += _parameters(before.input_schema, now.input_schema)
    if _differ(before.output_schema, now.output_schema):
        said.append(description_texts.RESULT_CHANGED)
    if _differ(before.examples, now.examples):
        said.append("its examples")
    said += [
        description_texts.hint_changed(name, _hint(old), _hint(getattr(now.annotations, name)))
        for name, old in asdict(before.annotations).items()
        if old is not getattr(now.annotations, name)
    ]
    return f"changed: {', '.join(said)}" if said else ""


def _parameters(before: Any, now: Any) -> list[str]:
    if not _differ(before, now):
        return []
    old, new = properties_of(before), properties_of(now)
    changed = [name for name in old.keys() & new.keys() if _differ(old[name], new[name])]
    said = [
        f"{what} {_listed(names)}"
        for what, names in (
            ("new parameter", new.keys() - old.keys()),
            ("removed parameter", old.keys() - new.keys()),
            ("parameter", changed),
        )
        if names
    ]
    required = set(required_of(now)) - set(required_of(before)) - (new.keys() - old.keys())
    if required:
        said.append(f"now required {_listed(required)}")
    return said or [description_texts.SCHEMA_CHANGED]


def _listed(names: Iterable[str]) -> str:
    return few([repr(one_line(name, _NAME_CHARACTERS)) for name in sorted(names)], _NAMES)


def _hint(value: bool | None) -> str:  # noqa: FBT001 - one of the server's hints
    return "not said" if value is None else "yes" if value else "no"


def _differ(one: Any, other: Any) -> bool:
    return canonical_json(one) != canonical_json(other)
