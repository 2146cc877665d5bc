"""Whether a request has an id that its answer can carry: the SDK takes one with another id for a notification.

Above: stdio.py, connections.py. Below: nothing. Nobody would ever be told of such a request, not even that it is wrong.
"""

from __future__ import annotations

from typing import Any

NO_ID = "Invalid request: an id is a text or a whole number, and a request has one; not executed"


def is_id(value: Any) -> bool:
    """Tell whether a value is an id: JSON-RPC would allow null too, and MCP does not."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def has_no_right_id(message: Any) -> bool:
    """Tell whether a decoded message is a request with an id that is none.

    A notification in which an id stands all the same, as some programs write null, is one by its method.
    """
    if not isinstance(message, dict) or "id" not in message or is_id(message["id"]):
        return False
    method = message.get("method")
    return isinstance(method, str) and not method.startswith("notifications/")
