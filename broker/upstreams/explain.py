"""What went wrong with a connection, in a sentence for the operator and with what to do.

Above: upstream.py. Below: nothing. The SDK wraps the same fault in different groups of exceptions; the texts
here are ours, with a child's last words as the only foreign part, short and inert.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2
from mcp import MCPError
from pydantic import ValidationError

from broker.errors import LoginError, ReplyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.upstreams.connection import Connection
    from broker.upstreams.server_config import ServerConfig


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong, without a full stop, and what to do about it."""

    problem: str
    what_to_do: str


def explain(
    name: str,
    settings: ServerConfig,
    connection: Connection,
    error: Exception | None,
    *,
    timed_out: bool,
) -> Trouble:
    """Put the end of a connection, or of an attempt at one, into words."""
    if timed_out:
        seconds = f"{settings.connect_timeout_seconds:g}"
        return Trouble(
            f"it did not become ready within {seconds} s",
            "Run its command by hand to see whether it starts, or raise connect_timeout_seconds.",
        )
    causes = list(_causes(error)) if error is not None else []
    for cause in causes:
        trouble = _known(name, settings, cause)
        if trouble is not None:
            return trouble
    if connection.http_status is not None:
        return Trouble(
            f"it answered HTTP {connection.http_status}",
            "Check the credentials in 'headers'.",
        )
    if connection.reason:
        return Trouble(connection.reason, "Run its command by hand to see why.")
    for cause in causes:
        if isinstance(cause, httpx2.HTTPError):
            return _unreachable(cause)
    look = "Run its command by hand" if settings.url is None else "See what the server's log says"
    return Trouble(_unforeseen(causes), f"{look}, or ask its author.")


def _known(name: str, settings: ServerConfig, cause: Exception) -> Trouble | None:  # noqa: PLR0911  # a table of faults
    command = settings.command or ""
    match cause:
        case FileNotFoundError() | NotADirectoryError():
            if settings.cwd is not None and not settings.cwd.is_dir():
                return Trouble("its working directory does not exist", "Correct 'cwd'.")
            remedy = "Install it, or give its full path as 'command'."
            if " " in command:
                remedy = "'command' is the program alone: write the rest in 'args'."
            return Trouble(f"the command {command!r} was not found", remedy)
        case PermissionError():
            return Trouble(f"the command {command!r} may not be run", "Make the file executable, or correct 'command'.")
        case OSError() if not isinstance(cause, ConnectionError):
            return Trouble(f"the command {command!r} cannot be started", "Correct 'command'.")
        case LoginError():
            is_account = settings.oauth is not None and settings.oauth.grant == "client_credentials"
            account = "Correct client_id, client_secret and issuer of its 'oauth'."
            return Trouble(str(cause), account if is_account else f"Log in with `codemode mcp login {name}`.")
        case ReplyError():
            return Trouble(str(cause).rstrip("."), "This is a fault of the server.")
        case RuntimeError() if "protocol version" in str(cause):
            return Trouble("it speaks no protocol version that we know", "Update the server.")
        case MCPError() if cause.code == -32022:  # noqa: PLR2004  # UNSUPPORTED_PROTOCOL_VERSION
            return Trouble("it speaks no protocol version that we know", "Update the server.")
    return None


def _unreachable(error: httpx2.HTTPError) -> Trouble:
    for cause in _chain(error):
        match cause:
            case socket.gaierror():
                return Trouble("the host name of its URL is not known", "Correct 'url'.")
            case ssl.SSLCertVerificationError():
                return Trouble("its certificate is not trusted", "Have it issued anew, or correct 'url'.")
            case ssl.SSLError():
                return Trouble("it speaks no TLS", "Correct 'url': is it http instead of https?")
    if isinstance(error, httpx2.ConnectError):
        return Trouble("nothing answers at its URL", "Start the server or correct 'url'.")
    return Trouble("it broke off before it had answered", "See what the server's log says, or correct 'url'.")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _unforeseen(causes: list[Exception]) -> str:
    match causes:
        case [MCPError() as error, *_]:
            return f"it answered with JSON-RPC error {error.code} before it was ready"
        case [ValidationError(), *_]:
            return "it answered with something that the protocol does not allow"
        case [error, *_]:
            return f"it cannot be used: {type(error).__name__}"
    return "the connection ended"


def _causes(error: BaseException) -> Iterator[Exception]:
    """Yield the exceptions inside groups of exceptions, with their causes."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _causes(one)
    elif isinstance(error, Exception):
        yield error
