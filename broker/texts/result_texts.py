"""Why a server's result cannot be given to a script, to follow "the result of …". Nothing here decides anything.

Above: result_values.py and tool_results.py, for a model's answer sampling.py. Below: nothing. call_texts.unfit_result
says the rest, that the call was made and what to do; of an answer of a model, call_texts.extract_got.
"""

from __future__ import annotations

from codegen.plain_text import one_line

_FAULT_CHARACTERS = 450

NOT_JSON = "has a value that is not JSON"
NO_JSON = "is no JSON"
UNKNOWN_TYPE = "has a resultType that we do not know"
NO_STRUCTURED_CONTENT = "has no structuredContent, though the tool has an outputSchema"


def too_deep(levels: int) -> str:
    """Return that it is nested deeper than so many levels."""
    return f"is nested deeper than {levels} levels"


def too_many_values(most: int) -> str:
    """Return that it has more than so many values."""
    return f"has more than {most} values"


def too_large(most_bytes: int) -> str:
    """Return that it is larger than so many bytes."""
    return f"is larger than {most_bytes} bytes"


def too_large_an_integer(bits: int) -> str:
    """Return that it has an integer of more than so many bits."""
    return f"has an integer of more than {bits} bits"


def no_blocks(most: int) -> str:
    """Return that its content is no list of at most so many blocks."""
    return f"has no list of at most {most} content blocks"


def unlike_schema(fault: str) -> str:
    """Return that it does not fit the tool's schema."""
    return f"does not fit the tool's outputSchema: {one_line(fault, _FAULT_CHARACTERS)}"
