"""Bounds on the messages of a server, whatever carries them, and why its connection ends that goes over one.

Above: child_messages.py, and for servers behind HTTP connecting.py, http_answers.py, http_messages.py and
http_trail.py; calls.py, which tells a script. Below: nothing.
"""

from __future__ import annotations

LINE_BYTES = 8 * 1024 * 1024
"""The longest message a server may send."""

VALUES = 700_000
"""How many commas and brackets one message may hold: a list of empty lists takes sixty times its bytes in memory."""

OVER_BOUND = f"it sent a message over our bound of {LINE_BYTES} bytes"
MANY_VALUES = f"it sent a message of more than {VALUES} values"
SIZE_REASONS = frozenset({OVER_BOUND, MANY_VALUES})
"""Why an answer is lost that the next call gets as well."""

REQUESTS = 1_000
"""Requests of a server that wait for our answers."""

FLOODED = f"it sent more than {REQUESTS} requests and did not wait for answers"
