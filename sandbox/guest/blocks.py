"""What a script has beside Python and its tools: `display`, `read_bytes` and `extract`, as builtins.

They can be imported from `tools` as well. Each is a call of the host, named without a dot, which no tool is. Content
blocks that are not text are small handles in a script, `{"type", "mime_type", "size", "id"}`; what they stand for stays
with the host.
"""

import base64
import builtins

from . import expected_types, tool_errors

_KINDS = ("image", "audio", "resource")
_BINARY = ("image/", "audio/", "video/")
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", b"", "image/png"),
    (b"\xff\xd8\xff", b"", "image/jpeg"),
    (b"GIF8", b"", "image/gif"),
    (b"RIFF", b"WEBP", "image/webp"),
    (b"RIFF", b"WAVE", "audio/wav"),
    (b"%PDF-", b"", "application/pdf"),
    (b"<svg", b"", "image/svg+xml"),
)
"""What the bytes of each kind begin with, and what follows behind the eighth."""


_bridge = None


def install(bridge) -> None:
    """Make the three functions builtins, for the run that this bridge belongs to."""
    global _bridge
    _bridge = bridge
    builtins.__dict__.update(FUNCTIONS)


def display(*values, mime_type=None):
    """Show values to whoever reads the result: images, audio and resources as such, anything else as printed."""
    for value in values:
        _display(value, mime_type)


def _display(value, mime_type):
    if isinstance(value, list) and any(map(_is_block, value)):
        for block in value:
            _display(block, mime_type)
    elif isinstance(value, dict) and _holds_blocks(value.get("content")):
        _display(value["content"], mime_type)
    elif _is_handle(value):
        _bridge.post("display", {"id": value["id"]})
    elif carried := _carried(value):
        _bridge.post("display", {"mime_type": carried[0], "data": carried[1]})
    elif isinstance(value, str) and mime_type is not None:
        if mime_type.startswith(_BINARY) and mime_type != "image/svg+xml":
            raise TypeError(f"display() of {mime_type} takes bytes, not a text")
        _display(value.encode("utf-8", "replace"), mime_type)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        kind = mime_type or _kind_of(data)
        if kind is None:
            raise TypeError('display() of bytes needs what they are: display(data, mime_type="image/png")')
        _bridge.post("display", {"mime_type": kind, "data": base64.b64encode(data).decode("ascii")})
    elif _is_block(value) and value["type"] == "text" and isinstance(value.get("text"), str):
        print(value["text"])
    else:
        print(value)


def _kind_of(data):
    for begin, inner, kind in _SIGNATURES:
        if data.startswith(begin) and data[8:12].startswith(inner):
            return kind
    return None


def read_bytes(block):
    """Return, once awaited, the bytes of an image, audio or resource that a tool returned."""
    if carried := _carried(block):
        return _decoded(carried[1])
    if not _is_handle(block):
        raise TypeError("read_bytes() takes a block that a tool returned, a dict with type and id")
    return _bytes(_bridge.caller("read_bytes")({"id": block["id"]}))


async def _bytes(call):
    return base64.b64decode(await call)


async def _decoded(data):
    try:
        return base64.b64decode(data)
    except ValueError as error:
        raise tool_errors.ToolResultError(f"read_bytes() got a block whose data is no base64: {error}") from None


def extract(value, expected, instructions=""):
    """Return, once awaited, what a model reads out of a value, as a value of the expected type."""
    schema = expected_types.schema_of(expected)
    given = value if isinstance(value, str) else repr(value)
    arguments = {"value": given, "schema": schema, "instructions": instructions}
    return _extracted(_bridge.caller("extract")(arguments), expected)


async def _extracted(call, expected):
    found = await call
    try:
        return expected_types.build(found, expected)
    except (TypeError, ValueError, OverflowError) as error:
        raise tool_errors.ToolResultError(f"extract() got a value that is not {expected}: {error}") from None


FUNCTIONS = {"display": display, "read_bytes": read_bytes, "extract": extract}


def _is_block(value):
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _carried(value):
    """Return the kind and the base64 text of what a block carries as MCP writes it, in objects that servers return."""
    if not _is_block(value) or value["type"] not in _KINDS:
        return None
    kind, data = value.get("mimeType"), value.get("data")
    if value["type"] == "resource":
        part = value["resource"] if isinstance(value.get("resource"), dict) else {}
        kind, data = part.get("mimeType", "application/octet-stream"), part.get("blob")
    return (kind, data) if isinstance(kind, str) and isinstance(data, str) else None


def _holds_blocks(value):
    """Tell whether this is a list of which a part is more than text."""
    return isinstance(value, list) and any(_is_handle(one) or _carried(one) is not None for one in value)


def _is_handle(value):
    return _is_block(value) and value["type"] in _KINDS and isinstance(value.get("id"), str)
