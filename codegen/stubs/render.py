"""Types and signatures to stub text.

Above: stub generation and `render_module`. Below: type_tree, identifiers. Three ways lead from values to
text: names that identifiers.py made, annotations that type_tree writes, and text through `literal`,
`_docstring` or `_comment`, which take inert text only (plain_text.py). source_check.py reads the result
back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from codegen.identifiers import is_plain_key
from codegen.plain_text import literal
from codegen.schemas.type_tree import ANY, Alias, Field, Model, Named, Type, parts, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LINE_LENGTH = 100
# Each space more than one is a token on each line, a twentieth of all stubs.
_INDENT = " "


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter of a signature; `default` is `...` where the key is left out unless given."""

    name: str
    key: str
    type: Type
    required: bool
    default: Any
    note: str


@dataclass(frozen=True, slots=True)
class Signature:
    """One function: `doc` is its description, `extra` the type of keys it takes besides its arguments."""

    name: str
    arguments: tuple[Argument, ...]
    extra: Type | None
    returns: Type
    doc: str
    remarks: tuple[str, ...] = ()


def render_checked(definitions: Sequence[Model | Alias], signature: Signature) -> str:
    """Return the text for the type checker: without prose, and with the types of other keys in a form that it knows."""
    arguments = tuple(replace(one, note="") for one in signature.arguments)
    blocks = [_alias(one) if isinstance(one, Alias) else _checked_model(one) for one in definitions]
    return "\n\n".join([*blocks, _function(replace(signature, doc="", remarks=(), arguments=arguments))]) + "\n"


def render_stub(definitions: Sequence[Model | Alias], signature: Signature) -> str:
    """Return the text for the model: one function and the types that it uses."""
    blocks = [_alias(one) if isinstance(one, Alias) else _model(one) for one in definitions]
    return "\n\n".join([*blocks, _function(signature)]) + "\n"


def imports_of(definitions: Iterable[Model | Alias], signature: Signature) -> tuple[str, ...]:
    """Return the names that the text needs from `typing`."""
    needed: set[str] = set()
    types = [one.type for one in signature.arguments] + [signature.returns]
    if signature.extra is not None:
        types.append(signature.extra)
    for definition in definitions:
        if isinstance(definition, Alias):
            needed.add("TypeAlias")
            types.append(definition.type)
            continue
        needed.add("TypedDict")
        types += [one.type for one in definition.fields]
        if _is_mostly_optional(definition):
            needed |= {"Required"} if any(one.required for one in definition.fields) else set()
        elif not all(one.required for one in definition.fields):
            needed.add("NotRequired")
    text = " ".join(map(written, types))
    needed |= {name for name in ("Any", "Literal") if name in text.replace("[", " ").replace("]", " ").split()}
    return tuple(sorted(needed))


def _alias(alias: Alias) -> str:
    return f"{alias.name}: TypeAlias = {written(alias.type)!r}"


def _model(model: Model) -> str:
    if all(is_plain_key(field.key) for field in model.fields):
        lines = [f"class {model.name}(TypedDict{', total=False' if _is_mostly_optional(model) else ''}):"]
        if model.note:
            lines.append(_INDENT + _docstring(model.note))
        lines += [f"{_INDENT}{one.key}: {_field_type(one, model)}{_comment(one.note)}" for one in model.fields]
        lines += _extra_line(model)
        return "\n".join(lines)
    lines = [f"{model.name} = TypedDict({model.name!r}, {{{_comment(model.note)}"]
    lines += [
        f"{_INDENT}{literal(one.key)}: {_field_type(one, model, lazy=True)},{_comment(one.note)}"
        for one in model.fields
    ]
    lines += _extra_line(model)
    return "\n".join([*lines, "}, total=False)" if _is_mostly_optional(model) else "})"])


def _is_mostly_optional(model: Model) -> bool:
    """Tell whether marking the required keys takes fewer marks than marking the optional ones."""
    required = sum(field.required for field in model.fields)
    return required < len(model.fields) - required


def _field_type(field: Field, model: Model, *, lazy: bool = False) -> str:
    """Return the type of a key, marked as required or not where needed; `lazy` if names in it are defined later."""
    text = written(field.type)
    if lazy and any(isinstance(part, Named) for part in parts(field.type)):
        text = repr(text)
    if field.required:
        return f"Required[{text}]" if _is_mostly_optional(model) else text
    return text if _is_mostly_optional(model) else f"NotRequired[{text}]"


def _extra_line(model: Model) -> list[str]:
    return [] if model.extra is None or model.extra == ANY else [f"{_INDENT}# other keys: {written(model.extra)}"]


def _bare(model: Model) -> Model:
    fields = tuple(replace(one, note="") for one in model.fields)
    return replace(model, fields=fields, note="")


def _checked_model(model: Model) -> str:
    text = _model(_bare(replace(model, extra=None)))
    if model.extra is None:
        return text
    extra = f", extra_items={written(model.extra)}"
    if text.startswith("class "):
        return text.replace("(TypedDict", f"(TypedDict{extra}", 1)
    return text.removesuffix(")") + f"{extra})"


def _function(signature: Signature) -> str:
    listed = [(_argument(one), one.note) for one in signature.arguments]
    if signature.extra is not None:
        listed.append((f"**{_name_of_extra(signature)}: {written(signature.extra)}", ""))
    star = ["*"] if signature.arguments else []
    returns = f") -> {written(signature.returns)}:"
    head = f"async def {signature.name}({', '.join([*star, *(text for text, _ in listed)])}{returns}"
    if len(head) > LINE_LENGTH or any(note for _, note in listed):
        lines = [f"{_INDENT}{text},{_comment(note)}" for text, note in listed]
        head = "\n".join([f"async def {signature.name}({'*,' if star else ''}", *lines, returns])
    remarks = [f"# {remark}" for remark in signature.remarks]
    body = [head, f"{_INDENT}{_docstring(signature.doc)}", f"{_INDENT}..."] if signature.doc else [f"{head} ..."]
    return "\n".join([*remarks, *body])


def _name_of_extra(signature: Signature) -> str:
    name = "extra"
    while any(one.name == name for one in signature.arguments):
        name += "_"
    return name


def _argument(argument: Argument) -> str:
    text = f"{argument.name}: {written(argument.type)}"
    if argument.required:
        return text
    return f"{text} = {'...' if argument.default is ... else literal(argument.default)}"


def _docstring(text: str) -> str:
    """Return text as a docstring with its further lines indented and its quotes escaped."""
    ends_in_quote = text.endswith('"')
    escaped = text.removesuffix('"').replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if ends_in_quote:
        escaped += '\\"'
    first, *others = escaped.split("\n")
    body = "\n".join([first, *(f"{_INDENT}{line}" if line else "" for line in others)])
    return f'"""{body}"""'


def _comment(text: str) -> str:
    return f" # {text}" if text else ""
