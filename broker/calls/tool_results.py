"""The result of `tools/call` to the value that a script gets, by one rule.

Above: tool_calls.py, and upstreams/calls.py for whether a call failed. Below: json_schema.py, call_failures.py.
Everything in a result was written by the server.

1. `isError`: the call fails in the script as `ToolError` with the server's text, marked as such.
2. A tool with an `outputSchema`: its `structuredContent`, checked against the schema. Where it is missing, one
   text block that is JSON and fits the schema stands for it (older servers). `{"result": value}` that a server
   wrapped around a plain value is unwrapped where the stub says so.
3. A tool without: its `structuredContent` if it sends one all the same; else one text block is its text,
   exactly, as `str`, and no block is `""`; anything else is a list with a dict for each block.

A text is never parsed as JSON without a schema that says so: the type of a value would depend on its content,
and a tool that reads files would give a dict for one file and a string for the next.

Blocks that are not text become small dicts with `type`, `mime_type` and `size`; their base64 data stays here, and an
`id` names it for `display` and `read_bytes`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.calls.call_failures import failure, quoted
from broker.calls.json_schema import first_fault
from broker.errors import ReplyError
from codegen.plain_text import one_line
from sandbox import Completion, Failed, Returned

if TYPE_CHECKING:
    from broker.calls.content_blocks import ContentBlocks
    from broker.tools.catalog import CatalogEntry

_LARGEST_INTEGER_BITS = 4_096
_SMALL = 2**63
_BLOCKS = 1_000
_NAME_CHARACTERS = 130
_ABSENT = object()


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultBounds:
    """How large a value a script may be given. Checked before the value is copied."""

    value_bytes: int = 4 * 1024 * 1024
    depth: int = 60
    nodes: int = 200_000


_BOUNDS = ResultBounds()


def completion_of(
    raw: dict[str, Any], tool: CatalogEntry, bounds: ResultBounds = _BOUNDS, blocks: ContentBlocks | None = None
) -> Completion:
    """Turn a result into what the script's call returns or raises. Never raises.

    Blocks that are not text are kept in `blocks`, where the script can have them displayed.
    """
    try:
        return _completion(raw, tool, bounds, blocks)
    except ReplyError as error:
        return failure("ToolResultError", str(error), tool)


def is_error(raw: dict[str, Any]) -> bool:
    """Tell whether a result says that the call failed, also in another way than with `true`."""
    return raw.get("isError") not in (None, False)


def _completion(
    raw: dict[str, Any], tool: CatalogEntry, bounds: ResultBounds, blocks: ContentBlocks | None
) -> Completion:
    kind = raw.get("resultType", "complete")
    if kind != "complete":
        raise _bad(tool, "has a resultType that we do not know")
    content = raw.get("content", [])
    if not isinstance(content, list) or len(content) > _BLOCKS:
        raise _bad(tool, f"has no list of at most {_BLOCKS} content blocks")
    structured = raw.get("structuredContent", _ABSENT)
    if is_error(raw):
        return _tool_error(content, structured, tool, bounds)
    if tool.spec.output_schema is not None:
        return Returned(_structured_value(content, structured, tool, bounds))
    if structured is not _ABSENT and structured is not None:
        return Returned(_bounded(structured, tool, bounds))
    return Returned(_content_value(content, tool, bounds, blocks))


def _tool_error(content: list[Any], structured: Any, tool: CatalogEntry, bounds: ResultBounds) -> Failed:
    blocks = [_block(one) for one in content]
    text = "\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
    return failure(
        "ToolError",
        quoted(tool.spec.server, text or "no message"),
        tool,
        content=_bounded_or_none(blocks, tool, bounds),
        structured_content=None if structured is _ABSENT else _bounded_or_none(structured, tool, bounds),
    )


def _structured_value(content: list[Any], structured: Any, tool: CatalogEntry, bounds: ResultBounds) -> Any:
    value = structured
    if value is _ABSENT or value is None:
        value = _from_text(content)
        if value is _ABSENT:
            raise _bad(tool, "has no structuredContent, though the tool has an outputSchema")
    value = _bounded(value, tool, bounds)
    fault = first_fault(value, tool.spec.output_schema)
    if fault is not None:
        raise _bad(tool, f"does not fit the tool's outputSchema: {fault}")
    if tool.stub().unwraps_result and isinstance(value, dict):
        return value.get("result")
    return value


def _from_text(content: list[Any]) -> Any:
    match content:
        case [{"type": "text", "text": str() as text}]:
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                return _ABSENT
    return _ABSENT


def _content_value(content: list[Any], tool: CatalogEntry, bounds: ResultBounds, blocks: ContentBlocks | None) -> Any:
    match content:
        case []:
            return ""
        case [{"type": "text", "text": str() as text}]:
            return _bounded(text, tool, bounds)
    value = _bounded([_block(one) for one in content], tool, bounds)
    if blocks is not None:
        for handle, block in zip(value, content, strict=True):
            if (name := blocks.keep(block)) is not None:
                handle["id"] = name
    return value


def _block(block: Any) -> dict[str, Any]:
    """Return a block without base64 data. A block of a kind that we do not know keeps its type alone."""
    match block:
        case {"type": "text", "text": str() as text}:
            return {"type": "text", "text": text}
        case {"type": "image" | "audio" as kind, "data": str() as data}:
            return {"type": kind, "mime_type": _text(block.get("mimeType")), "size": _decoded_size(data)}
        case {"type": "resource", "resource": dict() as resource}:
            return _resource(resource)
        case {"type": "resource_link"}:
            size = block.get("size")
            return {
                "type": "resource_link",
                "uri": _text(block.get("uri")),
                "name": _text(block.get("name")),
                "mime_type": _text(block.get("mimeType")),
                "size": size if isinstance(size, int) else None,
            }
        case {"type": str() as kind}:
            return {"type": kind}
    return {"type": "unknown"}


def _resource(resource: dict[str, Any]) -> dict[str, Any]:
    handle: dict[str, Any] = {
        "type": "resource",
        "uri": _text(resource.get("uri")),
        "mime_type": _text(resource.get("mimeType")),
    }
    text, blob = resource.get("text"), resource.get("blob")
    if isinstance(text, str):
        return handle | {"size": len(text.encode("utf-8", "replace")), "text": text}
    return handle | {"size": _decoded_size(blob) if isinstance(blob, str) else 0}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _decoded_size(base64_text: str) -> int:
    return len(base64_text) * 3 // 4 - base64_text[-2:].count("=")


def _bounded_or_none(value: Any, tool: CatalogEntry, bounds: ResultBounds) -> Any:
    try:
        return _bounded(value, tool, bounds)
    except ReplyError:
        return None


def _bounded(value: Any, tool: CatalogEntry, bounds: ResultBounds) -> Any:
    """Return the value as valid JSON within the bounds: NaN and infinities become None, lone surrogates `?`."""
    return value if _is_clean(value, tool, bounds) else _normalised(value, tool)


def _is_clean(value: Any, tool: CatalogEntry, bounds: ResultBounds) -> bool:
    """Walk the value without recursion and refuse it as soon as it is over a bound.

    Tells whether the value is JSON as it is, so that it need not be copied.
    """
    size = nodes = 0
    is_clean = True
    stack = [(value, 1)]
    while stack:
        item, depth = stack.pop()
        nodes += 1
        if depth > bounds.depth:
            raise _bad(tool, f"is nested deeper than {bounds.depth} levels")
        if nodes > bounds.nodes:
            raise _bad(tool, f"has more than {bounds.nodes} values")
        if isinstance(item, str):
            is_ascii = item.isascii()
            is_clean = is_clean and is_ascii
            size += len(item) if is_ascii else len(item.encode("utf-8", "replace"))
        elif isinstance(item, dict):
            is_clean = is_clean and all(type(key) is str and key.isascii() for key in item)
            size += sum(len(str(key)) for key in item)
            stack += [(one, depth + 1) for one in item.values()]
        elif isinstance(item, list | tuple):
            is_clean = is_clean and type(item) is list
            stack += [(one, depth + 1) for one in item]
        else:
            is_clean = is_clean and (
                item is None or type(item) is bool or (type(item) is int and -_SMALL < item < _SMALL)
            )
        if size + 2 * nodes > bounds.value_bytes:
            raise _bad(tool, f"is larger than {bounds.value_bytes} bytes")
    return is_clean


def _normalised(value: Any, tool: CatalogEntry) -> Any:
    """Copy a value whose depth has been checked."""
    match value:
        case None | bool():
            return value
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case int():
            if value.bit_length() > _LARGEST_INTEGER_BITS:
                raise _bad(tool, f"has an integer of more than {_LARGEST_INTEGER_BITS} bits")
            return value
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {_normalised(str(key), tool): _normalised(item, tool) for key, item in value.items()}
        case list() | tuple():
            return [_normalised(item, tool) for item in value]
    raise _bad(tool, "has a value that is not JSON")


def _bad(tool: CatalogEntry, what: str) -> ReplyError:
    name = one_line(tool.qualified_name, _NAME_CHARACTERS)
    return ReplyError(tool.spec.server, f"The result of {name} {what}. The call was made and is not repeated.")
