"""JSON Schema to typed Python stubs, and scripts checked against them.

Knows nothing of MCP sessions or Wasm. schemas/ makes types of what servers send, stubs/ writes them down, checking/
has scripts checked against what was written; each knows those before it alone. Everything in a tool definition is
hostile text; see schemas/closed_schema.py for how it is kept out of source, stubs/source_check.py for the proof.
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
