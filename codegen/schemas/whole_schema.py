"""Joins the parts of a schema that stand in several places: `allOf`, branches, conditionals, references.

Above: the closed schema. Below: merging and references. Work is counted against the budget of the tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codegen.schemas.budget import MAX_BRANCHES, MAX_DEPTH
from codegen.schemas.keywords import STRUCTURE, branches_of, properties_of, required_of, values_of_other_keys
from codegen.schemas.merging import are_too_many, merged
from codegen.schemas.needs import MAX_FORMS, needs_of
from codegen.schemas.references import reference_of

if TYPE_CHECKING:
    from codegen.schemas.budget import Budget
    from codegen.schemas.needs import Need
    from codegen.schemas.references import References

_PROPERTIES_A_SUBSCHEMA = 10
_TAKEN_APART = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "allOf", "required", "then", "else"})


class WholeSchemas:
    """Joins the parts of schemas of one document."""

    def __init__(self, references: References, budget: Budget) -> None:
        """Find parts through `references`."""
        self._references = references
        self._budget = budget

    def without_all_of(self, schema: dict[str, Any], depth: int = 0) -> dict[str, Any]:
        """Return a schema joined with the parts of its `allOf`; references in these are followed.

        The conditional parts of all are put into one `then`.
        """
        joined = {key: value for key, value in schema.items() if key not in {"allOf", "then", "else"}}
        required = dict.fromkeys(required_of(schema))
        conditional = _conditional(schema)
        waiting = list(reversed(branches_of(schema, "allOf")))
        seen: set[int] = {id(schema)}
        while waiting and self._budget.subschemas > 0:
            part = waiting.pop()
            if not isinstance(part, dict) or id(part) in seen:
                continue
            seen.add(id(part))
            self._budget.subschemas -= 1 + len(properties_of(part)) // _PROPERTIES_A_SUBSCHEMA
            reference = reference_of(part)
            if reference is not None:
                waiting.append(self._references.target(reference, part))
            waiting += reversed(branches_of(part, "allOf"))
            required |= dict.fromkeys(required_of(part))
            conditional += _conditional(part)
            rest = {key: value for key, value in part.items() if key not in _TAKEN_APART}
            for keyword in ("anyOf", "oneOf"):
                if are_too_many(joined, rest, keyword):
                    laid = self.flattened({keyword: rest.pop(keyword)}, depth + 1)
                    required |= dict.fromkeys(required_of(laid))
                    rest = merged(rest, laid)
            joined = merged(joined, rest)
        if conditional:
            joined["then"] = {"anyOf": conditional} if len(conditional) > 1 else conditional[0]
        return {**joined, "required": list(required)} if required else joined

    def with_conditionals(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        """Add the properties that `then`, `else`, `dependentSchemas` and `dependencies` may add, as optional ones."""
        branches = [schema.get("then"), schema.get("else")]
        for dependent in (schema.get("dependentSchemas"), schema.get("dependencies")):
            branches += dependent.values() if isinstance(dependent, dict) else []
        if not any(isinstance(branch, dict) for branch in branches):
            return schema
        properties = dict(properties_of(schema))
        for branch in branches:
            if isinstance(branch, dict):
                for key, subschema in properties_of(self.flattened(branch, depth + 1)).items():
                    properties.setdefault(key, subschema)
        return {**schema, "properties": properties}

    def flattened(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        """Return one object schema with the properties of all branches."""
        if depth > MAX_DEPTH or self._budget.subschemas < 0:
            return schema
        whole = self.without_all_of({"allOf": [schema]}, depth)
        whole = self.with_conditionals(whole, depth)
        for keyword in ("anyOf", "oneOf"):
            branches = [
                self.flattened(branch, depth + 1) for branch in branches_of(whole, keyword) if isinstance(branch, dict)
            ]
            self._budget.subschemas -= len(branches)
            whole = {key: value for key, value in whole.items() if key != keyword}
            if branches:
                whole = _laid_together(whole, branches)
        return whole

    def needs(self, schema: Any) -> tuple[Need, ...]:
        """Return what a root object needs by the branches of its `anyOf` or `oneOf`, besides what it always needs."""
        if not isinstance(schema, dict):
            return ()
        whole = self.without_all_of({"allOf": [schema]})
        for keyword in ("anyOf", "oneOf"):
            branches = [one for one in branches_of(whole, keyword) if isinstance(one, dict)]
            if 1 < len(branches) <= MAX_FORMS:
                forms = [self.without_all_of({"allOf": [branch]}) for branch in branches]
                return needs_of(forms, required_of(whole))
        return ()

    def described(self, schema: Any) -> Any:
        """Return the schema with the notes of what it refers to, or of its one alternative besides null."""
        for _ in range(4):
            if not isinstance(schema, dict):
                return schema
            reference = reference_of(schema)
            alternatives = [
                branch
                for branch in branches_of(schema, "anyOf")
                or branches_of(schema, "oneOf")
                or branches_of(schema, "allOf")
                if branch != {"type": "null"}
            ]
            inner: Any = None
            if reference is not None:
                inner = self._references.target(reference, schema)
            elif len(alternatives) == 1:
                inner = alternatives[0]
            if not isinstance(inner, dict):
                return schema
            own = {key: value for key, value in schema.items() if key not in STRUCTURE}
            schema = {**inner, **own}
        return schema


def _laid_together(whole: dict[str, Any], branches: list[dict[str, Any]]) -> dict[str, Any]:
    properties = dict(properties_of(whole))
    offers: dict[str, list[Any]] = {}
    for branch in branches:
        for key, subschema in properties_of(branch).items():
            offers.setdefault(key, []).append(subschema)
    for key, offered in offers.items():
        if key in properties:
            continue
        distinct = _distinct(offered)
        properties[key] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    needed = [set(required_of(branch)) for branch in branches]
    common = [key for key in required_of(branches[0]) if all(key in keys for keys in needed)]
    laid = {**whole, "required": [*required_of(whole), *common]}
    if properties or "properties" in whole:
        laid["properties"] = properties
    if "type" not in laid and all("type" in branch for branch in branches):
        laid["type"] = branches[0]["type"]
    if "additionalProperties" not in laid:
        laid |= _others_together(branches)
    return laid


def _others_together(branches: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the branches of an object say together about keys that none of them names."""
    said = [values for branch in branches if (values := values_of_other_keys(branch)) is not None]
    if said:
        distinct = _distinct([value for values in said for value in values])
        return {"additionalProperties": {"anyOf": distinct} if all(said) else True}
    is_closed = all(branch.get("additionalProperties") is False for branch in branches)
    return {"additionalProperties": False} if is_closed else {}


def _distinct(schemas: list[Any]) -> list[Any]:
    """Return schemas once each, as many as are told apart as alternatives and one more."""
    distinct: list[Any] = []
    for schema in schemas:
        if schema not in distinct:
            distinct.append(schema)
        if len(distinct) > MAX_BRANCHES:
            break
    return distinct


def _conditional(schema: dict[str, Any]) -> list[Any]:
    return [schema[keyword] for keyword in ("then", "else") if isinstance(schema.get(keyword), dict)]
