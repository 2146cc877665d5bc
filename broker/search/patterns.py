"""Tools whose definitions match a regular expression.

Above: tool_search.py. Below: RE2, which takes time in proportion to the text whatever the expression; Python's
own engine can be kept busy for hours by twenty characters. The proportion may still be a thousand times the usual one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import re2  # type: ignore[import-untyped]  # publishes no types

from broker.errors import SearchError
from broker.search.documents import DESCRIPTION_CHARACTERS, parameter_names
from broker.texts import search_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codegen import ToolSpec

EXPRESSION_CHARACTERS = 500
SECONDS = 0.5
"""Of the processor, for one search: it holds all that the broker does. The tool it is over in is looked at whole."""

_MEMORY_BYTES = 1 << 20


def matching(expression: str, specs: Iterable[ToolSpec], *, seconds: float = SECONDS) -> list[ToolSpec]:
    """Return the tools that an expression matches, upper and lower case alike; matches in names come first.

    Raises:
        SearchError: The expression is too long, is none that RE2 knows, or takes more than `seconds` of the processor.
    """
    compiled = _compile(expression)
    ends = time.thread_time() + seconds
    found: list[tuple[int, str, ToolSpec]] = []
    for spec in specs:
        place = _place(compiled, spec)
        if place is not None:
            found.append((place, spec.qualified_name, spec))
        if time.thread_time() > ends:
            raise SearchError(search_texts.TOO_SLOW)
    return [spec for _, _, spec in sorted(found, key=lambda entry: entry[:2])]


def _compile(expression: str) -> Any:
    if len(expression) > EXPRESSION_CHARACTERS:
        raise SearchError(search_texts.expression_too_long(len(expression), EXPRESSION_CHARACTERS))
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        return re2.compile(expression, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise SearchError(search_texts.no_expression(_reason(error))) from None


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else search_texts.NOT_UNICODE


def _place(compiled: Any, spec: ToolSpec) -> int | None:
    texts = (
        spec.qualified_name,
        spec.title or "",
        spec.description,
        "\n".join(parameter_names(spec.input_schema)),
    )
    for place, text in enumerate(texts):
        if compiled.search(text[:DESCRIPTION_CHARACTERS].encode("utf-8", "replace").decode()):
            return place
    return None
