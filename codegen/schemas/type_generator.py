"""A closed document to types, by datamodel-code-generator.

Above: stub generation. Below: flat_document.py, type_tree. The generator sees tokens of ours only (see
closed_schema.py), so nothing a server wrote can reach its templates; its text is parsed, never run, and read back into
the closed node kinds of type_tree. Anything else in it is a `GenerationError`.
"""

from __future__ import annotations

import ast
import json
import threading
from functools import cache, lru_cache
from typing import Any, TypeAlias

from codegen.errors import GenerationError
from codegen.schemas.flat_document import FlatDocument, put_together
from codegen.schemas.type_tree import ANY, NONE, Choice, DictOf, ListOf, Named, Plain, Type, union

ROOT = "Root"
Definitions: TypeAlias = "dict[str, dict[str, Type] | Type]"

# The generator keeps caches of its own; one call at a time.
_LOCK = threading.Lock()
_SCALARS = {name: Plain(name) for name in ("str", "int", "float", "bool")} | {"Any": ANY}
# What it writes for a list of nothing but such lists.
_BARE: dict[str, Type] = {"list": ListOf(ANY), "dict": DictOf(ANY)}


@lru_cache(maxsize=512)
def generate_types(document: str) -> Definitions:
    """Return what each definition of a closed document (JSON text) is, with the document itself under `ROOT`.

    An object is a dictionary from property tokens to types, anything else a type. Literal values are still
    tokens.

    Raises:
        GenerationError: If the generator fails or writes something unknown.
    """
    source = _generated_source(FlatDocument().schema(json.loads(document)))
    try:
        body = ast.parse(source).body
        return put_together(
            dict(_definition(node) for node in body if not isinstance(node, ast.Import | ast.ImportFrom))
        )
    except (SyntaxError, RecursionError) as error:
        raise GenerationError("the type generator wrote text that cannot be read back") from error


def _generated_source(document: dict[str, Any]) -> str:
    # The first use takes 0.2 s, which a cached stub does not need.
    from datamodel_code_generator import generate  # noqa: PLC0415

    try:
        with _LOCK:
            source = generate(document, **_options())
    except Exception as error:  # the generator's own tree, pydantic's and RecursionError
        raise GenerationError(f"the type generator failed: {type(error).__name__}") from error
    if not isinstance(source, str):
        raise GenerationError("the type generator wrote more than one module")
    return source


@cache
def _options() -> dict[str, Any]:
    from datamodel_code_generator.enums import DataModelType, InputFileType  # noqa: PLC0415
    from datamodel_code_generator.format import PythonVersion  # noqa: PLC0415

    return {
        "input_file_type": InputFileType.JsonSchema,
        "output_model_type": DataModelType.TypingTypedDict,
        # The oldest Python that reads the text back, which is the host's.
        "target_python_version": PythonVersion.PY_311,
        "class_name": ROOT,
        "formatters": [],
        "enum_field_as_literal": "all",
        "use_union_operator": True,
        "use_standard_collections": True,
        "disable_timestamp": True,
        "disable_future_imports": True,
        "allow_remote_refs": False,
    }


def _definition(statement: ast.stmt) -> tuple[str, dict[str, Type] | Type]:
    match statement:
        case ast.ClassDef(name=name, body=body, decorator_list=[]):
            return name, dict(_property(one) for one in body if not isinstance(one, ast.Pass))
        case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias"), value=ast.expr() as value):
            return name, _type(value)
        case _:
            raise GenerationError(f"the type generator wrote a {type(statement).__name__}")


def _property(statement: ast.stmt) -> tuple[str, Type]:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=None):
            return name, _type(annotation)
        case _:
            raise GenerationError(f"the type generator wrote a {type(statement).__name__} in a class")


def _type(node: ast.expr) -> Type:  # noqa: PLR0911  # one line for each kind of node
    match node:
        case ast.Constant(value=None):
            return NONE
        case ast.Constant(value=str(name)) | ast.Name(id=name):
            return _SCALARS.get(name) or _BARE.get(name) or Named(name)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return union([_type(left), _type(right)])
        case ast.Subscript(value=ast.Name(id="Union"), slice=ast.Tuple(elts=members)):
            return union([_type(member) for member in members])
        case ast.Subscript(value=ast.Name(id="Optional"), slice=member):
            return union([_type(member), NONE])
        case ast.Subscript(value=ast.Name(id="NotRequired"), slice=member):
            return _type(member)
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return ListOf(_type(item))
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[ast.Name(id="str"), value])):
            return DictOf(_type(value))
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            return Choice(tuple(map(_token, choices.elts if isinstance(choices, ast.Tuple) else [choices])))
        case _:
            raise GenerationError(f"the type generator wrote a {type(node).__name__} as a type")


def _token(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(token)):
            return token
        case _:
            raise GenerationError("the type generator wrote a literal that is not a token")
