"""Rewrites a server's schemas in the closed subset of JSON Schema that the type generator gets (closed_types.py).

Above: generate.py. Below: choices, references, merging, notes. A rewritten schema accepts at least what the original
accepts; where no type can say it, the schema becomes `{}`, and a degradation says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codegen.identifiers import identifier
from codegen.plain_text import one_line
from codegen.schemas.budget import MAX_BRANCHES, MAX_DEPTH, MAX_SUBSCHEMAS, Budget
from codegen.schemas.choices import MAX_CHOICES, closed_choice
from codegen.schemas.class_names import branch_words, reference_words, singular
from codegen.schemas.closed_types import EXTRA, RESULT, ClosedDocument, ClosedField, ClosedType, any_of, is_text
from codegen.schemas.keywords import (
    STRUCTURE,
    branches_of,
    elements_of,
    implied_types,
    only_adds_conditions,
    properties_of,
    required_of,
    says_something,
    takes_other_keys,
    type_names,
    values_of_other_keys,
)
from codegen.schemas.notes import GIVEN, GOT, PARAMETER, described, note_of
from codegen.schemas.places import Places
from codegen.schemas.references import References, reference_of
from codegen.schemas.whole_schema import WholeSchemas

if TYPE_CHECKING:
    from codegen.schemas.needs import Need

MAX_PARAMETERS = 1_000
"""Of a tool; the most that a real one has is 58."""

MAX_ALTERNATIVES = 32
"""Beyond so many, alternatives that share a shape are laid together into one object; real ones have up to 31."""

# Beside a reference or alternatives these say nothing that those do not say themselves.
_SLIGHT = frozenset({"type", "additionalProperties"})
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})
_OTHERS_THAN_OBJECTS: tuple[ClosedType, ...] = (
    *({"type": name} for name in ("string", "number", "boolean", "null")),
    {"type": "array", "items": {}},
)


class SchemaRewriter:
    """Rewrites the schemas of one tool into one document, within the bounds above and those of budget.py."""

    def __init__(self, document: ClosedDocument, *, most_fields: int) -> None:
        """Write into `document` at most `most_fields` fields of objects, besides the parameters."""
        self._document = document
        self._budget = Budget(fields=most_fields, most_fields=most_fields)
        self._references = References(None)
        self._whole = WholeSchemas(self._references, self._budget)
        self._places = Places(document)
        self._detail = GIVEN

    def parameters(self, schema: Any, words: tuple[str, ...]) -> tuple[tuple[ClosedField, ...], bool]:
        """Rewrite an input schema; return its properties and whether it takes others, whose type is root `EXTRA`.

        All branches of the root are laid together: a property is required if every branch requires it.
        """
        self._start(schema)
        root = self._whole.flattened(schema, 0) if isinstance(schema, dict) else {}
        if not isinstance(schema, dict) or ("type" in root and "object" not in type_names(root)):
            if schema is not True:
                self._degrade(words, "the input schema is not of an object")
            self._document.roots[EXTRA] = {}
            return (), True
        if len(properties_of(root)) + len(required_of(root)) > MAX_PARAMETERS:
            self._degrade(words, f"more than {MAX_PARAMETERS} parameters")
            self._document.roots[EXTRA] = {}
            return (), True
        fields_, types = self._fields(root, words, 0)
        self._document.roots.update(types)
        takes_extra = takes_other_keys(root) and self._listed_keys(root) is None
        if takes_extra:
            self._document.roots[EXTRA] = self._extra(root, words, 0) or {}
        return fields_, takes_extra

    def needs(self) -> tuple[Need, ...]:
        """Return what the forms of the input need besides its required keys; for the schema rewritten last."""
        return self._whole.needs(self._references.document)

    def result(self, schema: Any, words: tuple[str, ...], *, unwraps: bool) -> None:
        """Rewrite an output schema, or the one property `result` of it, as the root `RESULT`."""
        self._start(schema)
        self._detail = GOT
        shown = properties_of(schema)["result"] if unwraps else schema
        self._document.roots[RESULT] = self._closed(shown, words, 0)

    def _start(self, schema: Any) -> None:
        self._references = References(schema)
        self._whole = WholeSchemas(self._references, self._budget)
        self._places = Places(self._document)

    def _degrade(self, words: tuple[str, ...], reason: str) -> ClosedType:
        place = one_line(".".join(words), 120)
        self._document.degradations.append(f"{place}: {reason}")
        return {}

    def _closed(self, schema: Any, words: tuple[str, ...], depth: int) -> ClosedType:
        reason = self._out_of_bounds(schema, depth)
        if reason:
            return self._degrade(words, reason)
        if not isinstance(schema, dict):
            return {}
        closed = self._of_value(schema, words, depth)
        return any_of([closed, {"type": "null"}]) if schema.get("nullable") is True else closed

    def _of_value(self, schema: dict[str, Any], words: tuple[str, ...], depth: int) -> ClosedType:
        """Rewrite a schema without `nullable`, which OpenAPI 3.0 has beside every other keyword."""
        reference = reference_of(schema)
        if reference is not None:
            return self._referenced(schema, reference, words, depth)
        if branches_of(schema, "allOf"):
            return self._joined(schema, words, depth)
        if "const" in schema or isinstance(schema.get("enum"), list):
            return self._choice(schema, words)
        return self._branched(schema, words, depth)

    def _out_of_bounds(self, schema: Any, depth: int) -> str:
        self._budget.subschemas -= 1
        if self._budget.subschemas < 0:
            return f"more than {MAX_SUBSCHEMAS} subschemas"
        if depth > MAX_DEPTH:
            return f"nested deeper than {MAX_DEPTH}"
        return "" if isinstance(schema, dict | bool) else "not a schema"

    def _branched(self, schema: dict[str, Any], words: tuple[str, ...], depth: int) -> ClosedType:
        for keyword in ("anyOf", "oneOf"):
            branches = [branch for branch in branches_of(schema, keyword) if branch is not False]
            if branches and not only_adds_conditions(schema, branches):
                return self._alternatives(schema, keyword, branches, words, depth)
        return self._by_type(schema, words, depth)

    def _referenced(self, schema: dict[str, Any], reference: str, words: tuple[str, ...], depth: int) -> ClosedType:
        target = self._references.target(reference, schema)
        if target is None:
            shown = one_line(reference, 60)
            return self._degrade(words, f"$ref {shown!r} is not in this schema and is never fetched")
        if isinstance(target, dict) and _structure(schema) - {"$ref", "$dynamicRef", "$recursiveRef"} - _SLIGHT:
            neighbours = {key: value for key, value in schema.items() if key not in {"$ref", "$dynamicRef"}}
            whole = {**neighbours, "allOf": [*branches_of(neighbours, "allOf"), target]}
            return self._once(schema, self._whole.without_all_of(whole), words, depth)
        closed = self._once(target, target, reference_words(reference, words), depth)
        # MCP's schemas say that their root is an object. One that does not say so is plain JSON Schema, where keywords
        # of objects allow every other kind of value as well.
        is_bare_root = target is self._references.document and isinstance(target, dict) and "type" not in target
        if is_bare_root and list(implied_types(target)) == ["object"]:
            return any_of([closed, *_OTHERS_THAN_OBJECTS])
        return closed

    def _joined(self, schema: dict[str, Any], words: tuple[str, ...], depth: int) -> ClosedType:
        parts = branches_of(schema, "allOf")
        if len(parts) == 1 and not _structure(schema) - {"allOf"} - _SLIGHT:
            return self._closed(parts[0], words, depth + 1)
        return self._once(parts, self._whole.without_all_of(schema), words, depth)

    def _once(self, place: Any, target: Any, words: tuple[str, ...], depth: int) -> ClosedType:
        return self._places.once(place, words, lambda: self._closed(target, words, depth + 1))

    def _alternatives(
        self, schema: dict[str, Any], keyword: str, branches: list[Any], words: tuple[str, ...], depth: int
    ) -> ClosedType:
        if len(branches) > MAX_BRANCHES:
            return self._degrade(words, f"{len(branches)} alternatives")
        base = {key: value for key, value in schema.items() if key not in {keyword, "title", "description", "default"}}
        shaped = bool(_structure(base) - _SLIGHT) or "object" not in type_names({"type": "object", **base})
        if shaped and len(branches) > MAX_ALTERNATIVES:
            return self._by_type(self._whole.flattened(schema, depth), words, depth)
        closed = []
        for branch in branches:
            whole = {**base, "allOf": [*branches_of(base, "allOf"), branch]} if shaped else branch
            closed.append(self._closed(whole, branch_words(branch, words), depth + 1))
        return any_of(closed)

    def _choice(self, schema: dict[str, Any], words: tuple[str, ...]) -> ClosedType:
        closed, reason = closed_choice(schema, self._document, self._budget)
        if reason:
            self._degrade(words, reason)
        return closed

    def _by_type(self, schema: dict[str, Any], words: tuple[str, ...], depth: int) -> ClosedType:
        names = type_names(schema) or implied_types(schema)
        return any_of(self._of_type(name, schema, words, depth) for name in dict.fromkeys(names))

    def _of_type(self, name: str, schema: dict[str, Any], words: tuple[str, ...], depth: int) -> ClosedType:
        if name in _SCALARS:
            return {"type": name}
        if name == "array":
            return {"type": "array", "items": self._items(schema, words, depth)}
        if name == "object":
            return self._object(schema, words, depth)
        return self._degrade(words, f"type {one_line(name, 40)!r} is not a JSON type")

    def _items(self, schema: dict[str, Any], words: tuple[str, ...], depth: int) -> ClosedType:
        """Rewrite the elements of an array; a tuple is a list of the types at its places."""
        item_words = (*words[:-1], singular(words[-1])) if words else words
        return any_of([self._closed(one, item_words, depth + 1) for one in elements_of(schema)])

    def _object(self, schema: dict[str, Any], words: tuple[str, ...], depth: int) -> ClosedType:
        schema = self._whole.with_conditionals(schema, depth)
        self._budget.fields -= len(self._keys(schema))
        if self._budget.fields < 0:
            self._degrade(words, f"more than {self._budget.most_fields} fields in all; this object is not typed")
            return {"type": "object", "additionalProperties": {}}
        fields_, types = self._fields(schema, words, depth)
        extra = None if self._listed_keys(schema) else self._extra(schema, words, depth)
        if not fields_:
            return {"type": "object", "additionalProperties": extra if extra is not None else {}}
        if extra is not None:
            types[EXTRA] = extra
        note = described(schema, self._detail)
        return {"$ref": f"#/$defs/{self._document.model_token(fields_, types, words, note)}"}

    def _fields(
        self, schema: dict[str, Any], words: tuple[str, ...], depth: int
    ) -> tuple[tuple[ClosedField, ...], dict[str, ClosedType]]:
        """Rewrite the properties of an object, each distinct type of theirs under one token."""
        required = set(required_of(schema))
        fields_: list[ClosedField] = []
        tokens: dict[str, str] = {}
        types: dict[str, ClosedType] = {}
        for key, subschema in self._keys(schema).items():
            if subschema is False or (isinstance(subschema, dict) and subschema.get("not") in ({}, True)):
                continue
            if not is_text(key):
                self._degrade(words, "a key is not valid text: it has half of a surrogate pair")
                continue
            closed = self._closed(subschema, (*words, identifier(key)), depth + 1)
            token = tokens.setdefault(repr(closed), f"p{len(tokens)}")
            types[token] = closed
            whole = self._whole.described(subschema)
            fields_.append(
                ClosedField(
                    key,
                    token,
                    key in required,
                    note_of(key, whole, PARAMETER if depth == 0 and self._detail is GIVEN else self._detail),
                    whole,
                    says_something(subschema),
                )
            )
        return tuple(fields_), types

    def _keys(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of each key that an object is said to have, in whatever place."""
        values = values_of_other_keys(schema) or [True]
        others = values[0] if len(values) == 1 else {"anyOf": values}
        named = [*required_of(schema), *(self._listed_keys(schema) or ())]
        properties = properties_of(schema)
        return properties | {key: others for key in named if key not in properties}

    def _listed_keys(self, schema: dict[str, Any]) -> list[str] | None:
        """Return the keys of which all of an object's are, None if they are not listed or too many to show."""
        names = schema.get("propertyNames")
        reference = reference_of(names) if isinstance(names, dict) else None
        if reference is not None:
            names = self._references.target(reference, names)
        listed = names.get("enum") if isinstance(names, dict) else None
        if not isinstance(listed, list) or len(listed) > MAX_CHOICES:
            return None
        return [key for key in listed if isinstance(key, str)]

    def _extra(self, schema: dict[str, Any], words: tuple[str, ...], depth: int) -> ClosedType | None:
        """Return the type of other keys where the schema gives one, None where it says nothing about them."""
        values = values_of_other_keys(schema)
        if values is None:
            return None
        return any_of([self._closed(value, (*words, "value"), depth + 1) for value in values])


def _structure(schema: dict[str, Any]) -> frozenset[str]:
    return STRUCTURE.intersection(schema)
