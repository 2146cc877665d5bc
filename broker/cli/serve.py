"""`codemode serve`: the broker as an MCP server, until its client goes or it is told to end."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import anyio

from broker.cli.configured import load_config, open_broker, report_no_config, report_servers
from broker.cli.exit_codes import ExitCode
from broker.cli.given_grants import grants_of, report_idle, report_unlisted
from broker.cli.signals import ending_signals
from broker.cli.terminal import Problem, note
from broker.errors import ConfigError
from broker.server import BrokerServer
from broker.server.late_handshake import serve_connection
from broker.server.settings import TOKEN_CHARACTERS
from broker.server.stdio import standard_streams
from broker.upstreams.carried_text import IN_A_HEADER, fits_a_header

if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import AsyncIterator
    from pathlib import Path

    from anyio.abc import TaskGroup

    from broker import Broker, Grant, Session
    from broker.server.http import Address, HttpServer
    from broker.server.settings import ServeSettings

    Signals: TypeAlias = AsyncIterator[signal.Signals]

TOKEN_VARIABLE = "CODEMODE_TOKEN"  # noqa: S105  # the name of a variable
_HOLDER = "default"
"""The principal of that token."""

_ANSWER_SECONDS = 0.2
"""How long the answers of runs that have just ended take at most to be written to a client that reads."""

_AT_A_TERMINAL = (
    "serving MCP on stdin and stdout: a client starts this command by itself. --http HOST:PORT serves at an address."
)
_OTHER_ADDRESS = "Give an address of this machine, such as 127.0.0.1:8000."
_OTHER_PORT = "Choose another port, or 0 for any free one."
_REMEDIES = {errno.EADDRINUSE: _OTHER_PORT, errno.EACCES: _OTHER_PORT}


@dataclass(frozen=True)
class ServeRequest:
    """The arguments of `codemode serve`."""

    config: Path | None
    http: str | None
    allow: tuple[str, ...]


async def serve(request: ServeRequest) -> ExitCode:
    """Serve until the end."""
    config = load_config(request.config, needed=False)
    report_no_config(request.config)
    grants = grants_of(request.allow)
    report_idle(grants, config)
    settings = config.serve if request.http is None else _with_token(config.serve)
    with ExitStack() as stack:
        listening = None if request.http is None else _listen(request.http, settings)
        if listening is not None:
            stack.callback(listening.sock.close)
        # A client waits for its first answer: servers that are slow are waited for by whoever needs them.
        async with open_broker(config, runs_scripts=True) as broker:
            server = _server(broker, settings, grants)
            if config.recordings.resume == "automatic":
                broker.resume_interrupted()
            # Until the servers have ended too: clients that send SIGINT send SIGTERM soon after.
            signals = stack.enter_context(anyio.open_signal_receiver(*ending_signals()))
            if listening is None:
                if sys.stdin.isatty():
                    note(_AT_A_TERMINAL)
                await _serve_stdio(server, signals)
            else:
                await _serve_http(server, listening, request, signals)
    return ExitCode.COMPLETED


def _with_token(settings: ServeSettings) -> ServeSettings:
    """Return the settings with the token of the environment, which has to be one that the config might hold.

    Raises:
        Problem: It is too short, no client can send it, or the config has another one of its name. An empty one is too
            short: whoever sets the variable does not want to serve without.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    if token is None:
        return settings
    if len(token) < TOKEN_CHARACTERS:
        raise Problem(
            f"{TOKEN_VARIABLE} holds {len(token)} characters, and a token has at least {TOKEN_CHARACTERS}",
            "Set a longer one that is hard to guess, such as `openssl rand -hex 16` prints, or unset the variable.",
        )
    if not fits_a_header(token):
        raise Problem(
            f"{TOKEN_VARIABLE} holds what no header can carry",
            f"A token is of {IN_A_HEADER}, such as `openssl rand -hex 16` prints.",
        )
    if token in settings.tokens.values():
        return settings  # the config says whose it is
    if _HOLDER in settings.tokens:
        raise Problem(
            f"serve.tokens in the config has another token for {_HOLDER!r}, the name of whoever has {TOKEN_VARIABLE}",
            "Give that token another name in the config, or unset the variable.",
        )
    return settings.model_copy(update={"tokens": {**settings.tokens, _HOLDER: token}})


def _server(broker: Broker, settings: ServeSettings, grants: list[Grant]) -> BrokerServer:
    def make_session(principal: str) -> Session:
        return broker.session(grants=grants, principal=principal)

    return BrokerServer(broker, settings, make_session=make_session)


async def _serve_stdio(server: BrokerServer, signals: Signals) -> None:
    async with standard_streams() as (incoming, outgoing), anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signal, server, tasks, signals)
        await serve_connection(server.mcp, incoming, outgoing)
        tasks.cancel_scope.cancel()


async def _end_on_signal(server: BrokerServer, tasks: TaskGroup, signals: Signals) -> None:
    async for _ in signals:
        tasks.start_soon(server.end_servers_in_time)
        had_runs = len(server.runs) > 0
        await server.drain()
        if had_runs:
            await anyio.sleep(_ANSWER_SECONDS)
        tasks.cancel_scope.cancel()


@dataclass(frozen=True)
class _Listening:
    """Where requests come in."""

    address: Address
    sock: socket.socket


def _listen(where: str, settings: ServeSettings) -> _Listening:
    """Listen, before anything else is started.

    Raises:
        Problem: The address cannot be listened on, or may not be.
    """
    from broker.server.http import Address, check_guarded  # noqa: PLC0415  # not loaded for stdio

    try:
        address = Address.parse(where)
        check_guarded(settings, address)
        return _Listening(address, address.listen())
    except ValueError as error:
        raise Problem(f"--http: {error}") from None
    except ConfigError as error:
        raise Problem(str(error)) from None
    except OSError as error:
        what, _, _ = (error.strerror or "cannot be listened on").partition(" (")
        raise Problem(f"--http {where}: {what}", _REMEDIES.get(error.errno or 0, _OTHER_ADDRESS)) from None


async def _serve_http(server: BrokerServer, listening: _Listening, request: ServeRequest, signals: Signals) -> None:
    from broker.server.http import PATH, HttpServer, end_streams, http_app  # noqa: PLC0415  # not loaded for stdio

    address, sock = listening.address, listening.sock
    app = http_app(server, address)
    http = HttpServer(app, server.settings, end_streams=partial(end_streams, server))
    host, port = sock.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_http_on_signal, server, http, tasks, signals)
        tasks.start_soon(_report_when_settled, server.broker, request)
        note(f"serving MCP at http://{shown}:{port}{PATH}")
        if not (server.settings.tokens or server.settings.oauth):
            note(
                f"no authentication: every program on this machine can use it; set {TOKEN_VARIABLE} to require a token"
            )
        if address.is_wildcard and not server.settings.allowed_hosts:
            note('other machines are refused until serve.allowed_hosts has the names they use, as "broker.example:*"')
        await http.serve(sockets=[sock])
        tasks.cancel_scope.cancel()


async def _end_http_on_signal(server: BrokerServer, http: HttpServer, tasks: TaskGroup, signals: Signals) -> None:
    async for _ in signals:
        tasks.start_soon(server.end_servers_in_time)
        await server.drain()
        http.end()


async def _report_when_settled(broker: Broker, request: ServeRequest) -> None:
    await broker.wait_until_settled()
    report_servers(broker, request)
    report_unlisted(grants_of(request.allow), broker.catalog)
