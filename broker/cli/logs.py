"""Logs of the command line: structlog to stderr, quiet unless asked for.

Only the project's own loggers write. Those of libraries are silenced: at their levels they log message bodies,
in which an upstream may have put anything, secrets included.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

import structlog

from codegen.plain_text import indented, one_line

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

_VALUE_CHARACTERS = 500


def configure_logs(*, verbose: bool, as_json: bool) -> None:
    """Send logs to stderr; without either option only errors are written."""
    logging.getLogger().addHandler(logging.NullHandler())
    renderer: Processor = structlog.processors.JSONRenderer() if as_json else _for_people()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _make_inert,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if verbose else logging.INFO if as_json else logging.ERROR
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _for_people() -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"))


def _make_inert(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Make the values inert: they may hold text that a server or a client chose."""
    return {key: _inert(key, value) if isinstance(value, str) else value for key, value in event.items()}


def _inert(key: str, value: str) -> str:
    if key != "exception":
        return one_line(value, _VALUE_CHARACTERS)
    # Indented, a line of an exception's text cannot pass for one of the log.
    return "\n".join(f"  {indented(line, _VALUE_CHARACTERS)}" for line in value.splitlines())
