"""Exceptions of the package; all of them are faults on our side or wrong use.

    CodegenError
    ├── UnexpectedSourceError   generated source holds a node kind that a stub never has
    ├── GenerationError         the type generator failed on one document; the tool degrades to `Any`
    └── CheckerError            the type checker could not be run

What a tool definition can cause is never an exception: it is a stub with degradations.
"""

from __future__ import annotations


class CodegenError(Exception):
    """Base of what this package raises."""


class UnexpectedSourceError(CodegenError):
    """Generated source is not made of the node kinds of a stub; it is thrown away."""


class GenerationError(CodegenError):
    """The type generator gave nothing usable for a document."""


class CheckerError(CodegenError):
    """The type checker is missing, timed out or answered something that is not its report."""
