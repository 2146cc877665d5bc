"""Explains to the operator what went wrong with a connection, and what to do.

Above: upstream.py, login.py. Below: http_trail.py, http_answers.py, shortage.py. The SDK wraps the same fault in
different groups of exceptions; the texts here are ours, with a server's own words as the only foreign part, short and
inert.
"""

from __future__ import annotations

import re
import shlex
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2
from mcp import MCPError
from mcp.types import UNSUPPORTED_PROTOCOL_VERSION
from pydantic import ValidationError

from broker.callbacks import EscapedError
from broker.errors import LoginError, ReplyError
from broker.shortage import raise_limits, shortage
from broker.texts import call_texts
from broker.upstreams.http_answers import BROKEN_OFF, UNREACHED, UnreadError
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.upstreams.connection import Connection
    from broker.upstreams.http_trail import HttpTrail
    from broker.upstreams.server_config import ServerConfig


_HTTP_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL)
_OF_SDK_1 = re.compile(
    r"No module named 'mcp\.server\.fastmcp'|cannot import name '(?:FastMCP|McpError)' from"
    r"|'Server' object has no attribute '(?:list|call)_"
)
"""What Python says where a server was made for version 1 of the MCP SDK and has got a later one."""
_WITH_SDK_1 = "Install it with version 1 of the MCP SDK, as in `uvx --with 'mcp<2' SERVER`."
_WORDS_CHARACTERS = 200
_HOST_CHARACTERS = 80
_ACCOUNT = "Correct client_id, client_secret and issuer of its 'oauth'."


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is wrong, as a sentence without its full stop, and what to do about it."""

    problem: str
    what_to_do: str


def explain(
    name: str,
    settings: ServerConfig,
    connection: Connection,
    error: Exception | None,
    *,
    timed_out: bool,
) -> Explanation:
    """Put the end of a connection, or of an attempt at one, into words."""
    trail = connection.trail
    if trail.refused is not None and trail.missing_metadata:
        return _refused(name, settings, trail)
    if timed_out:
        see = "Run its command by hand to see whether it starts" if settings.url is None else "See whether it runs"
        seconds = f"{settings.connect_timeout_seconds:g}"
        late = f"it did not become ready within {seconds} s{call_texts.last_words(connection.last_words)}"
        return Explanation(late, f"{see}, or raise connect_timeout_seconds.")
    causes = list(_causes(error)) if error is not None else []
    known = next(filter(None, (_known(name, settings, cause) for cause in causes)), None)
    if known is not None:
        return known
    if trail.refused is not None:
        return _refused(name, settings, trail)
    look = "Run its command by hand" if settings.url is None else "See what the server's log says"
    if reason := trail.unread or connection.reason:
        remedy = _WITH_SDK_1 if _OF_SDK_1.search(reason) else f"{look} to see why."
        return Explanation(reason, remedy if settings.url is None else f"{look}.")
    return (
        unreachable(error, settings.url or "")
        or _unanswered(trail, causes)
        or Explanation(_unforeseen(causes, connection.redact), f"{look}, or ask the server's author.")
    )


def explain_own(
    settings: ServerConfig, connection: Connection, error: Exception | None, *, timed_out: bool
) -> Explanation:
    """Put into words why a server of this process cannot be used; what its code raised is in the log."""
    if timed_out:
        late = f"it did not become ready within {settings.connect_timeout_seconds:g} s"
        return Explanation(late, "See what its lifespan waits for.")
    causes = list(_causes(error)) if error is not None else []
    reply = next((str(cause).rstrip(".") for cause in causes if isinstance(cause, ReplyError)), None)
    problem = connection.reason or reply or _unforeseen(causes, connection.redact)
    return Explanation(problem, "The log has the traceback.")


def unreachable(error: BaseException | None, url: str) -> Explanation | None:
    """Put into words why the server at `url` cannot be reached over HTTP, or another that it names for a login.

    Returns None if something else went wrong.
    """
    causes = _causes(error) if error is not None else ()
    cause = next((cause for cause in causes if isinstance(cause, _HTTP_ERRORS)), None)
    if cause is None:
        return None
    if problem := _problem_of_login(cause, url):
        return Explanation(problem, "Tell those who run the server.")
    return _unreachable(cause)


def _unanswered(trail: HttpTrail, causes: list[Exception]) -> Explanation | None:
    losses = (trail.loss(cause) for cause in causes if isinstance(cause, MCPError))
    loss = next(filter(None, losses), None)
    return None if loss is None else Explanation(loss, "Correct 'url', or see what the server's log says.")


def _known(name: str, settings: ServerConfig, cause: Exception) -> Explanation | None:  # noqa: PLR0911  # a table
    command = settings.command or ""
    match cause:
        case FileNotFoundError() | NotADirectoryError():
            if settings.cwd is not None and not settings.cwd.is_dir():
                return Explanation("its working directory does not exist", "Correct 'cwd'.")
            remedy = "Install it, or give its full path as 'command'."
            if " " in command:
                remedy = "'command' takes only the program: put the rest into 'args'."
            return Explanation(f"the command {command!r} was not found", remedy)
        case PermissionError():
            return Explanation(
                f"the command {command!r} may not be run", "Make the file executable, or correct 'command'."
            )
        case OSError() if missing := shortage(cause):
            return Explanation(f"the system gives it no more {missing}, so it was not started", raise_limits())
        case OSError() if not isinstance(cause, ConnectionError):
            return Explanation(f"the command {command!r} cannot be started", "Correct 'command'.")
        case LoginError():
            return Explanation(str(cause), _ACCOUNT if _has_account(settings) else f"Log in with {_login(name)}.")
        case ReplyError() | UnreadError():
            return Explanation(str(cause).rstrip("."), "This is a fault of the server.")
    if _is_about_versions(cause):
        return Explanation("it supports no protocol version that codemode supports", "Update the server.")
    return None


def _is_about_versions(cause: Exception) -> bool:
    if isinstance(cause, MCPError):
        return cause.code == UNSUPPORTED_PROTOCOL_VERSION
    return isinstance(cause, RuntimeError) and "protocol version" in str(cause)


def token_refused(status: int) -> str:
    """Put into words that a server does not accept a token that was made for it."""
    return (
        f"it answered HTTP {status} to a token that it was just given: the token may be for another address, or lack a "
        "scope. Compare 'url' and the 'scopes' of its 'oauth' with what it wants; its log may say more"
    )


def _refused(name: str, settings: ServerConfig, trail: HttpTrail) -> Explanation:
    """Put a refusal over HTTP into words."""
    missing = trail.missing_metadata
    problem = f"it answered HTTP {trail.refused}{f', and {missing}' if missing else ''}"
    if _has_account(settings):
        return Explanation(problem, f"See whether its authorization server runs. {_ACCOUNT}" if missing else _ACCOUNT)
    if settings.oauth is not None:
        when = " when that address answers" if missing else ""
        return Explanation(problem, f"Log in with {_login(name)}{when}, or give it a token in 'headers'.")
    if settings.headers:
        return Explanation(problem, "Correct the credentials in its 'headers'.")
    header = '"headers": {"Authorization": "Bearer …"}'
    return Explanation(problem, f'Add {header} to its entry, or add "oauth": {{}} and log in with {_login(name)}.')


def _has_account(settings: ServerConfig) -> bool:
    return settings.oauth is not None and settings.oauth.grant == "client_credentials"


def _login(name: str) -> str:
    return f"`codemode mcp login {shlex.quote(name)}`"


def _unreachable(error: httpx2.HTTPError | httpx2.InvalidURL) -> Explanation:
    if isinstance(error, httpx2.InvalidURL):
        return Explanation("its 'url' is not a usable URL", "Correct 'url'.")
    for cause in _chain(error):
        match cause:
            case socket.gaierror():
                return Explanation("the host name of its URL is not known", "Correct 'url'.")
            case ssl.SSLCertVerificationError():
                return Explanation("its certificate is not trusted", "Have it reissued, or correct 'url'.")
            case ssl.SSLError():
                return Explanation("it does not speak TLS", "Correct 'url': is it http instead of https?")
    if isinstance(error, httpx2.ConnectError):
        return Explanation(UNREACHED, "Start the server or correct 'url'.")
    return Explanation(BROKEN_OFF, "See what the server's log says, or correct 'url'.")


def _problem_of_login(error: httpx2.HTTPError | httpx2.InvalidURL, url: str) -> str:
    """Return what is wrong with an address that the server names for a login; nothing where its own was asked."""
    try:
        own = httpx2.URL(url).netloc
        if isinstance(error, httpx2.InvalidURL):
            return "an address that it names for a login is not a usable URL"
        asked = error.request.url.netloc
    except (httpx2.InvalidURL, RuntimeError):  # the config's own is at fault, or the error knows no request
        return ""
    host = one_line(asked.decode(), _HOST_CHARACTERS)
    return "" if asked == own else f"{host}, which it names for a login, cannot be reached"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _unforeseen(causes: list[Exception], redact: Callable[[str], str]) -> str:
    match causes:
        case [MCPError() as error, *_]:
            # Redacted before it is cut, as a child's last words are.
            words = one_line(redact(error.message), _WORDS_CHARACTERS)
            answered = f"it answered with {call_texts.json_rpc_error(error.code)} before it was ready"
            return answered + call_texts.words_of_error(words)
        case [ValidationError(), *_]:
            return "it answered with something that the protocol does not allow"
        case [error, *_]:
            escaped = isinstance(error, EscapedError)
            return f"it cannot be used: {error if escaped else type(error).__name__}"
    return "the connection ended"


def _causes(error: BaseException) -> Iterator[Exception]:
    """Yield the exceptions inside groups of exceptions, with their causes."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _causes(one)
    elif isinstance(error, Exception):
        yield error
