"""The arguments of a call as JSON, and what to write instead of one that is none.

Above: `stubs`. Below: `protocol`.
"""

import collections.abc
import inspect
import io
import re

from . import protocol, tool_errors


def converted(path: str, parameter: str, value: object) -> object:
    """Return an argument as JSON can carry it.

    Raises:
        ToolArgumentsError: It cannot; the message says what to write.
    """

    def unknown(found):
        raise tool_errors.ToolArgumentsError(f"{path}(): {parameter} holds {_instead_of(found)}")

    try:
        return protocol.to_unicode_json(value, unknown)
    except protocol.NotJsonError as error:
        raise tool_errors.ToolArgumentsError(f"{path}(): {parameter}: {error}") from None


def _instead_of(found):
    """Return what this is, and what a script may have meant by it."""
    if inspect.isawaitable(found):
        return "a call that was not awaited: write `await ...` around it"
    if isinstance(found, collections.abc.AsyncIterable):
        return "an asynchronous generator: write a list, as `[await ... for ...]` or `[... async for ...]`"
    if found is ...:
        return "`...`, which only stands for a value: write the value, or leave it out where it is optional"
    if isinstance(found, (io.StringIO, io.BytesIO)):
        return f"a {_kind(found)}, which JSON cannot carry: pass its `.getvalue()`"
    if isinstance(found, re.Match):
        return "a Match, which JSON cannot carry: pass its `.group()`"
    if inspect.isroutine(found) or isinstance(found, type):
        return f"{found.__name__} itself, which JSON cannot carry: call it, or pass its name as text"
    has_text = type(found).__str__ is not object.__str__
    made = (
        "`str(...)` of it"
        if has_text
        else "`vars(...)` of it"
        if hasattr(found, "__dict__")
        else "plain values made of it"
    )
    return f"a value of type {_kind(found)}, which JSON cannot carry: pass {made}"


def _kind(found):
    return type(found).__qualname__
