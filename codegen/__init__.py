"""JSON Schema to typed Python stubs, and scripts checked against them.

Knows nothing of MCP sessions or Wasm. schemas/ makes types from a server's schemas, stubs/ writes them as stubs, and
checking/ checks scripts against the stubs; each uses only those before it. Everything in a tool definition is hostile
text: schemas/closed_schema.py keeps it out of source, and stubs/source_check.py proves that.
"""

from codegen.checking.check import Diagnostic, check
from codegen.checking.type_checker import TypeChecker
from codegen.errors import CheckerError, CodegenError, GenerationError, UnexpectedSourceError
from codegen.identifiers import assign_identifiers
from codegen.schemas.generated_types import TypedCount
from codegen.stubs.stub import Parameter, Stub
from codegen.stubs.stub_cache import generate_stub, is_generated
from codegen.stubs.stub_module import render_module
from codegen.tool_spec import ToolAnnotations, ToolSpec

__all__ = [
    "CheckerError",
    "CodegenError",
    "Diagnostic",
    "GenerationError",
    "Parameter",
    "Stub",
    "ToolAnnotations",
    "ToolSpec",
    "TypeChecker",
    "TypedCount",
    "UnexpectedSourceError",
    "assign_identifiers",
    "check",
    "generate_stub",
    "is_generated",
    "render_module",
]
