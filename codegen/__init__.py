"""JSON Schema to typed Python stubs, and scripts checked against them.

Knows nothing of MCP sessions or Wasm. Everything in a tool definition is hostile text; see closed_schema.py
for how it is kept out of source, source_check.py for the proof.
"""

from codegen.check import Diagnostic, check
from codegen.errors import CheckerError, CodegenError, GenerationError, UnexpectedSourceError
from codegen.identifiers import assign_identifiers
from codegen.module import render_module
from codegen.stub import Parameter, Stub, TypedCount
from codegen.stub_cache import generate_stub, is_generated
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
    "TypedCount",
    "UnexpectedSourceError",
    "assign_identifiers",
    "check",
    "generate_stub",
    "is_generated",
    "render_module",
]
