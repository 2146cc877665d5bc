"""What pydantic found wrong with one value, in words that follow its place: `must be a whole number`.

Above: problems.py and policy_problems.py, which name the place. Below: pydantic. No words hold a value:
one may be a secret, or come from a variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_NUMBER = "must be a number"
_WHOLE_NUMBER = "must be a whole number"
_YES_OR_NO = "must be true or false"
_TEXT = "must be text in quotes"
_OBJECT = "must be a JSON object"
_WORDS = {
    "missing": "is missing",
    "too_short": "is empty",
    "bool_type": _YES_OR_NO,
    "bool_parsing": _YES_OR_NO,
    "int_type": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_parsing_size": _WHOLE_NUMBER,
    "int_from_float": _WHOLE_NUMBER,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "string_type": _TEXT,
    "path_type": "must be text",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "tuple_type": "must be a list",
    "list_type": "must be a list",
}
_BY_PATTERN = {
    "^https?://": "must be a URL that begins with http:// or https://",
    "^(/": "is not a JSON pointer; write '/name' for the argument 'name', '/name/0' for its first item",
    "^sha256:": "must be sha256: and 64 hexadecimal digits",
    "^[a-z][": "must be a word in small letters, as 'private'",
    "^[a-z0-9][": "must be the name of an image: small letters, digits, '-' and '_'",
    "^[A-Za-z_][": "must name a class as package.module:Name",
}


def words_for(fault: ErrorDetails) -> str:
    """Return what is wrong with the value."""
    kind, context = fault["type"], fault.get("ctx", {})
    match kind:
        case "string_too_short":
            least = context["min_length"]
            return "is empty" if least == 1 else f"must have at least {least} characters"
        case "string_too_long":
            return f"must have at most {context['max_length']} characters"
        case "string_pattern_mismatch":
            return next(words for start, words in _BY_PATTERN.items() if str(context["pattern"]).startswith(start))
        case _ if kind in _WORDS:
            return _WORDS[kind]
        case _:
            return f"must be {fault['msg'].removeprefix('Input should be ').removeprefix('a valid ')}"
