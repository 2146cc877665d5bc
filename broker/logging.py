"""The broker's own log: quiet until somebody wants it, never on stdout.

Above: every module that logs. Below: structlog. A program that configures structlog (the command line does) gets the
events through it; otherwise they go to the standard library's logger `codemode`, where an embedding program may listen.
Events hold names, counts and sentences of ours, and of a server at most one line that it printed, redacted; never
arguments, results or script output.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import structlog

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger

_standard = logging.getLogger("codemode")
_standard.addHandler(logging.NullHandler())
# The SDK logs whole messages of servers.
logging.getLogger("mcp").addHandler(logging.NullHandler())

_quiet: Any = structlog.wrap_logger(
    _standard,
    processors=[
        structlog.stdlib.filter_by_level,
        structlog.stdlib.add_log_level,
        structlog.processors.KeyValueRenderer(key_order=["event"]),
    ],
    wrapper_class=structlog.stdlib.BoundLogger,
)


def logger() -> BoundLogger:
    """Return where events go now."""
    return cast("BoundLogger", structlog.get_logger() if structlog.is_configured() else _quiet)
