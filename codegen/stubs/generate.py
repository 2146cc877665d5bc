"""Makes the `Stub` of a `ToolSpec`, by way of the closed schema, the type generator, names and text.

Above: the package's public functions. Below: every other module that makes stubs. Whatever a definition
holds, a stub comes out: what cannot be typed is `Any`, and the stub's degradations say why.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from codegen.errors import GenerationError, UnexpectedSourceError
from codegen.identifiers import assign_parameters
from codegen.plain_text import literal, one_line, paragraph
from codegen.schemas.brevity import without_repeats, worth_saying
from codegen.schemas.closed_schema import SchemaRewriter
from codegen.schemas.closed_types import EXTRA, RESULT, ClosedDocument, ClosedField
from codegen.schemas.generated_types import GeneratedTypes, TypedCount
from codegen.schemas.keywords import properties_of, required_of, type_names
from codegen.schemas.notes import PARAMETER
from codegen.schemas.references import References, reference_of
from codegen.schemas.type_generator import ROOT, generate_types
from codegen.schemas.type_tree import ANY, Alias, Model, Type, fits, parts
from codegen.stubs.argument_sections import without_arguments
from codegen.stubs.render import Argument, Signature, imports_of, render_checked, render_stub
from codegen.stubs.source_check import check_stub_source
from codegen.stubs.stub import Parameter, Stub

if TYPE_CHECKING:
    from codegen.schemas.needs import Need
    from codegen.tool_spec import ToolAnnotations, ToolSpec

DESCRIPTION_LENGTH = 2_000
DESCRIPTION_BYTES = 4_096
MAX_SOURCE_BYTES = 60_000
_MAX_DEGRADATIONS = 20
# A stub that is too long is made again with fewer of its objects typed, then with none.
_FIELDS_TRIED = (800, 150, 0)
_DEFAULT_LENGTH = 60
_SEPARATOR = re.compile(r"[-. ]")


@dataclass(frozen=True, slots=True)
class _Typed:
    """The types of one tool, with everything a signature needs."""

    definitions: tuple[Model | Alias, ...]
    arguments: tuple[tuple[ClosedField, Type], ...]
    extra: Type | None
    needs: tuple[Need, ...]
    returns: Type
    degradations: tuple[str, ...]
    count: TypedCount


def build_stub(spec: ToolSpec, *, namespace: str, function: str) -> Stub:
    """Generate the stub of one tool without any cache. Deterministic, never fails, opens nothing."""
    reason = ""
    for most_fields in _FIELDS_TRIED:
        try:
            unwraps = is_wrapped_result(spec.output_schema)
            typed = _typed(spec, function, unwraps=unwraps, most_fields=most_fields)
            return _stub(spec, namespace, function, typed, unwraps=unwraps)
        except (GenerationError, UnexpectedSourceError, RecursionError) as error:
            reason = "the schemas are nested too deep" if isinstance(error, RecursionError) else str(error)
    try:
        return _stub(spec, namespace, function, _untyped(reason), unwraps=False)
    except UnexpectedSourceError:
        silent = replace(spec, title=None, description="")
        return replace(_stub(silent, namespace, function, _untyped(reason), unwraps=False), spec=spec)


def is_wrapped_result(schema: Any) -> bool:
    """Tell whether an output schema is the object that Python servers put around other values.

    FastMCP and the Python SDK answer `{"result": value}` for a function that does not return an object.
    """
    if not isinstance(schema, dict) or isinstance(schema.get("additionalProperties"), dict):
        return False
    properties = properties_of(schema)
    if list(properties) != ["result"] or required_of(schema) != ["result"]:
        return False
    if isinstance(said := schema.get("x-fastmcp-wrap-result"), bool):
        return said
    inner = properties["result"]
    reference = reference_of(inner) if isinstance(inner, dict) else None
    if reference is not None:
        inner = References(schema).target(reference, inner)
    return not isinstance(inner, dict) or (type_names(inner) != ["object"] and "properties" not in inner)


def _typed(spec: ToolSpec, function: str, *, unwraps: bool, most_fields: int) -> _Typed:
    document = ClosedDocument()
    rewriter = SchemaRewriter(document, most_fields=most_fields)
    fields, accepts_extra = rewriter.parameters(spec.input_schema, (function,))
    needs = rewriter.needs()
    if spec.output_schema is not None:
        rewriter.result(spec.output_schema, (function, "result"), unwraps=unwraps)
    types = GeneratedTypes(document, generate_types(json.dumps(document.schema())))
    root = types.properties(ROOT)
    arguments = tuple((one, root[one.token]) for one in fields)
    return _Typed(
        definitions=types.definitions(),
        arguments=arguments,
        extra=root[EXTRA] if accepts_extra else None,
        needs=needs,
        returns=root.get(RESULT, ANY),
        degradations=_short_list(document.degradations),
        count=types.count(arguments, root.get(RESULT)),
    )


def _untyped(reason: str) -> _Typed:
    return _Typed((), (), extra=ANY, needs=(), returns=ANY, degradations=(reason,), count=TypedCount())


def _stub(spec: ToolSpec, namespace: str, function: str, typed: _Typed, *, unwraps: bool) -> Stub:
    names = assign_parameters(one.key for one, _ in typed.arguments)
    description, told = _description(spec, typed)
    in_order = sorted(typed.arguments, key=lambda pair: not pair[0].required)
    signature = Signature(
        name=function,
        arguments=tuple(
            _argument(one, type_, names[one.key], _argument_note(one, told.get(one.key, ""), spec.name, description))
            for one, type_ in in_order
        ),
        extra=typed.extra,
        returns=typed.returns,
        doc=_doc(spec.annotations, description, _needs(typed.needs, names)),
        remarks=tuple(f"Any: {one_line(reason, 200)}" for reason in typed.degradations),
    )
    source = render_stub(_once(typed.definitions, signature), signature)
    check_stub_source(source)
    if len(source.encode()) > MAX_SOURCE_BYTES:
        raise GenerationError(f"the stub would be longer than {MAX_SOURCE_BYTES} bytes")
    return Stub(
        spec=spec,
        namespace=namespace,
        function=function,
        source=source,
        checked_source=render_checked(typed.definitions, signature),
        imports=imports_of(typed.definitions, signature),
        types=tuple(one.name for one in typed.definitions),
        parameters=tuple(Parameter(one.name, one.key, one.required) for one in signature.arguments),
        accepts_extra=typed.extra is not None,
        unwraps_result=unwraps,
        degradations=typed.degradations,
        doc=one_line(spec.about, 120),
        typed=typed.count,
    )


def _once(definitions: tuple[Model | Alias, ...], signature: Signature) -> list[Model | Alias]:
    """Return the definitions with each note of a key once, and no note of an object that its key has too."""
    seen: set[tuple[str, str]] = set()
    said = {at.note for one in definitions if isinstance(one, Model) for at in one.fields}
    said |= {one.note for one in signature.arguments} | {signature.doc}
    return [
        replace(
            one,
            note="" if one.note in said else one.note,
            fields=tuple(replace(at, note=without_repeats(at.note, at.key, seen)) for at in one.fields),
        )
        if isinstance(one, Model)
        else one
        for one in definitions
    ]


def _argument(field: ClosedField, type_: Type, name: str, note: str) -> Argument:
    default, shown = _default(field.schema, type_)
    if field.required and default is not ...:
        default, shown = ..., literal(default)  # what to give where nothing else is wanted
    if shown:
        note = f"{note} (default {shown})" if note else f"default {shown}"
    if name.rstrip("_") != _SEPARATOR.sub("_", field.key):
        note = f"[{one_line(field.key, 80)}] {note}".rstrip()
    return Argument(name, field.key, type_, field.required, default, note)


def _argument_note(field: ClosedField, told: str, function: str, description: str) -> str:
    """Return what the schema and the description's section of arguments say of a parameter, once."""
    told = worth_saying(one_line(told, PARAMETER.first), field.key, function).removesuffix(".")
    note = worth_saying(field.note, field.key, function)
    if note and note in description:
        note = ""
    if not told or told in note:
        return note
    return told if note in told else f"{note}; {told}"


def _default(schema: Any, type_: Type) -> tuple[Any, str]:
    """Return the default as a value of the signature, or else as text for the note."""
    if not isinstance(schema, dict) or schema.get("default") is None:
        return ..., ""
    default = schema["default"]
    if isinstance(default, float) and not math.isfinite(default):
        return ..., ""
    shown = json.dumps(default) if not isinstance(default, dict | list) or len(default) <= _DEFAULT_LENGTH else ""
    if shown in {"{}", ""} or len(shown) > _DEFAULT_LENGTH:
        return ..., ""
    if isinstance(default, dict) or _holds_objects(default) or not fits(default, type_):
        return ..., one_line(shown, _DEFAULT_LENGTH)
    return default, ""


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(element, dict | list) for element in value)


def _needs(needs: tuple[Need, ...], names: dict[str, str]) -> str:
    """Say what makes a call, if there are several forms of it."""
    told = []
    for need in needs:
        keys = " and ".join(names[key] for key in need.keys if key in names)
        tag = f" if {names[need.tag[0]]} is {literal(need.tag[1])}" if need.tag and need.tag[0] in names else ""
        told.append(keys and keys + tag)
    between = ", " if any(need.tag for need in needs) else " or "
    return f"Needs {between.join(dict.fromkeys(told))}." if told and all(told) else ""


def _description(spec: ToolSpec, typed: _Typed) -> tuple[str, dict[str, str]]:
    """Return the description, and what it lists of single arguments, which is not in it then."""
    whole = paragraph(spec.about, 2 * DESCRIPTION_LENGTH)
    told_types = {one.key for one, type_ in typed.arguments if ANY not in parts(type_)}
    rest, told = without_arguments(whole, {one.key for one, _ in typed.arguments}, told_types, limit=PARAMETER.first)
    bounded = paragraph(rest, DESCRIPTION_LENGTH).encode()[:DESCRIPTION_BYTES]
    return bounded.decode(errors="ignore"), told


def _doc(annotations: ToolAnnotations, description: str, needs: str) -> str:
    first = " ".join(part for part in (_hint(annotations), description) if part)
    return "\n\n".join(part for part in (first, needs) if part)


def _hint(annotations: ToolAnnotations) -> str:
    """Return `(read-only)` or `(destructive)`, to stand first, where no description can push it out of sight."""
    if annotations.read_only is True:
        return "(read-only)"
    return "(destructive)" if annotations.destructive is True else ""


def _short_list(degradations: list[str]) -> tuple[str, ...]:
    distinct = list(dict.fromkeys(degradations))
    if len(distinct) <= _MAX_DEGRADATIONS:
        return tuple(distinct)
    return (*distinct[:_MAX_DEGRADATIONS], f"and {len(distinct) - _MAX_DEGRADATIONS} more")
