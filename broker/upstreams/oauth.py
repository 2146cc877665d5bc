"""OAuth for servers behind HTTP: the SDK's client, our storage of tokens, and the login that a person does once.

Above: connecting.py, which authenticates with it, and `codemode mcp login`. Below: the SDK's provider. Tokens are in
the system's keyring, or where there is none in a file of mode 0600; the redactor is told of each.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qs, urlsplit

import anyio
import platformdirs
from anyio.abc import SocketAttribute
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, BaseModel, ValidationError

from broker import keyrings
from broker.errors import LoginError
from broker.upstreams.oauth_settings import OAuthClient

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx2
    from anyio.abc import SocketStream

    from broker.upstreams.server_config import ServerConfig

SERVICE = "codemode-broker"
LOGIN_SECONDS = 300.0
"""How long a person has to log in."""

_REQUEST_BYTES = 16_384
_CLIENT = "codemode"
_WANTED = "it wants a login"
_Model = TypeVar("_Model", bound=BaseModel)
_ANSWER = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"


class KeptTokens:
    """The tokens of one server and the registration of our client there. The SDK's `TokenStorage`."""

    def __init__(self, url: str, learn: Callable[[str], None] | None = None) -> None:
        """Store for a URL; `learn` is told of each token, which is a secret from then on."""
        self._user = hashlib.sha256(url.encode()).hexdigest()
        self._learn = learn

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens, or None."""
        tokens = _parsed(OAuthToken, self._read().get("tokens"))
        self._tell(tokens)
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        self._tell(tokens)
        self._write({**self._read(), "tokens": tokens.model_dump(mode="json", exclude_none=True)})

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registration of our client, or None."""
        return _parsed(OAuthClientInformationFull, self._read().get("client"))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the registration of our client; tokens that another one was given are forgotten."""
        self._write({"client": client_info.model_dump(mode="json", exclude_none=True)})

    def forget(self) -> bool:
        """Remove everything: the next login registers again. Tell whether there were tokens."""
        had_tokens = "tokens" in self._read()
        keyrings.forget(SERVICE, self._user)
        self._file().unlink(missing_ok=True)
        return had_tokens

    def _tell(self, tokens: OAuthToken | None) -> None:
        if self._learn is not None and tokens is not None:
            for secret in (tokens.access_token, tokens.refresh_token):
                self._learn(secret or "")

    def _read(self) -> dict[str, object]:
        try:
            text = keyrings.password(SERVICE, self._user)
        except keyrings.KeyringError:
            text = None
        if text is None:
            try:
                text = self._file().read_text(encoding="utf-8")
            except OSError:
                return {}
        try:
            document = json.loads(text)
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}

    def _write(self, document: dict[str, object]) -> None:
        text = json.dumps(document)
        if keyrings.keep(SERVICE, self._user, text):
            self._file().unlink(missing_ok=True)
            return
        path = self._file()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Beside it and then in its place: a process that dies leaves the old one, and nobody reads half of it.
        new = path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        new.replace(path)

    def _file(self) -> Path:
        return tokens_folder() / f"{self._user}.json"


def tokens_folder() -> Path:
    """Return where tokens are where there is no keyring."""
    return platformdirs.user_data_path("codemode-broker") / "tokens"


async def authentication(settings: ServerConfig, learn: Callable[[str], None] | None = None) -> OAuthClientProvider:
    """Return what authenticates the requests to a server; nobody is there to log in.

    Raises:
        LoginError: A person has to log in first; requests raise it too, when tokens cannot be refreshed any more.
    """
    storage = KeptTokens(settings.url or "", learn)
    is_personal = settings.oauth is not None and settings.oauth.grant == "authorization_code"
    # Else each attempt to connect would register one more client.
    if is_personal and await storage.get_tokens() is None:
        raise LoginError(_WANTED)
    return _provider(settings, storage, None)


async def login(settings: ServerConfig, show: Callable[[str], None]) -> None:
    """Let a person log in to a server, and keep the tokens.

    Args:
        settings: The server.
        show: Shows a URL to the person, or opens it.

    Raises:
        LoginError: It did not come about; the text says why.
    """
    import httpx2  # noqa: PLC0415  # loaded with the SDK in any case

    storage = KeptTokens(settings.url or "")
    storage.forget()
    await _register(settings, storage)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=_port(settings)) as listener:
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # of anyio
        callback = _Callback(f"http://127.0.0.1:{port}/callback", show)
        provider = _provider(settings, storage, callback)
        problem: LoginError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, callback.serve)
            try:
                with anyio.fail_after(LOGIN_SECONDS):
                    # As the broker will: some servers ask for a login, or for one that is good for more, only then.
                    async with (
                        httpx2.AsyncClient(auth=provider, headers=settings.headers) as http,
                        Client(streamable_http_client(settings.url or "", http_client=http)) as client,
                    ):
                        await client.list_tools()
            except TimeoutError:
                problem = LoginError(f"nobody logged in within {LOGIN_SECONDS:g} s")
            except Exception as error:  # noqa: BLE001  # of the SDK or the network
                problem = LoginError(f"the login failed: {_innermost(error)}")
            tasks.cancel_scope.cancel()
    # What goes wrong after a login is for the connection to find out.
    if await storage.get_tokens() is None:
        raise callback.problem or problem or LoginError("the server asked for no login, and gave no token")


class _Provider(OAuthClientProvider):
    """The SDK's, which refreshes only tokens that it has seen expire itself, and after a restart wants a new login."""

    async def _perform_authorization(self) -> httpx2.Request:
        # Another process of the same user may have refreshed them, and each refresh token may be good for one use. What
        # was given to another registration is not for the authorization server that the upstream names now.
        context = self.context
        is_ours = await context.storage.get_client_info() == context.client_info
        context.current_tokens = await context.storage.get_tokens() if is_ours else None
        if self.context.can_refresh_token():
            return await self._refresh_token()
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        before = self.context.current_tokens
        if before is None or before.refresh_token is None:
            await super()._handle_token_response(response)
        elif not await self._handle_refresh_response(response):
            raise LoginError(_WANTED)


class _Login(OAuthClientProvider):
    """The SDK's, which binds to their authorization server only the clients that it has registered itself."""

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        client = self.context.client_info
        if client is not None and client.issuer is None and self.context.oauth_metadata is not None:
            client.issuer = self._expected_issuer()
            await self.context.storage.set_client_info(client)
        await super()._handle_token_response(response)


class _Account(ClientCredentialsOAuthProvider):
    """The SDK's, with errors that say what an operator can correct."""

    async def _perform_authorization(self) -> httpx2.Request:
        try:
            return await super()._perform_authorization()
        except OAuthFlowError:
            raise LoginError("its authorization server is not the issuer that the config names") from None

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        try:
            await super()._handle_token_response(response)
        except OAuthFlowError:
            raise LoginError("the authorization server did not accept the account") from None


class _Callback:
    """The end of a redirect, on this machine."""

    def __init__(self, url: str, show: Callable[[str], None]) -> None:
        self.url = url
        self._show = show
        self.problem: LoginError | None = None
        self._came = anyio.Event()
        self._parameters: dict[str, str] = {}

    async def show(self, url: str) -> None:
        """Send the person to the authorization server."""
        self._show(url)

    async def result(self) -> AuthorizationCodeResult:
        """Wait until the person comes back; the SDK compares the state."""
        await self._came.wait()
        if "code" not in self._parameters:
            refused = self._parameters.get("error", "no code")[:80]
            self.problem = LoginError(f"the authorization server refused: {refused}")
            raise self.problem
        fields = {key: self._parameters.get(key) for key in ("code", "state", "iss")}
        return AuthorizationCodeResult.model_validate(fields)

    async def serve(self, stream: SocketStream) -> None:
        """Answer one request of the browser; what is no request, and one that is broken off, does not end the login."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, ValueError):
            async with stream:
                await self._serve(stream)

    async def _serve(self, stream: SocketStream) -> None:
        request = await stream.receive(_REQUEST_BYTES)
        target = request.split(b" ", 2)[1].decode("ascii", "replace") if request.count(b" ") > 1 else ""
        place = urlsplit(target)
        if place.path != "/callback":
            await stream.send(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n")
            return
        self._parameters = {key: values[0] for key, values in parse_qs(place.query).items()}
        try:
            await stream.send(f"{_ANSWER}You can close this window and go back to the terminal.\n".encode())
        finally:
            self._came.set()


def _provider(settings: ServerConfig, storage: KeptTokens, callback: _Callback | None) -> OAuthClientProvider:
    oauth, url = settings.oauth or OAuthClient(), settings.url or ""
    scope = " ".join(oauth.scopes) or None
    if oauth.grant == "client_credentials":
        return _Account(
            url, storage, oauth.client_id or "", oauth.client_secret or "", scope=scope, issuer=oauth.issuer
        )
    redirect = callback.url if callback is not None else f"http://127.0.0.1:{_port(settings)}/callback"
    metadata = OAuthClientMetadata(
        redirect_uris=[AnyUrl(redirect)],
        client_name=_CLIENT,
        scope=scope,
        grant_types=["authorization_code", "refresh_token"],
    )
    if callback is None:
        return _Provider(url, metadata, storage, _nobody_is_there, _nobody_comes_back)
    return _Login(url, metadata, storage, redirect_handler=callback.show, callback_handler=callback.result)


async def _register(settings: ServerConfig, storage: KeptTokens) -> None:
    """Put the client that the config names in the place of one that we would register."""
    oauth = settings.oauth
    if oauth is not None and oauth.client_id is not None:
        method = "client_secret_basic" if oauth.client_secret else "none"
        fields = {"client_id": oauth.client_id, "client_secret": oauth.client_secret, "issuer": oauth.issuer}
        await storage.set_client_info(
            OAuthClientInformationFull.model_validate({**fields, "token_endpoint_auth_method": method})
        )


def _innermost(error: BaseException) -> str:
    """Return the kind of what is inside exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return type(error).__name__


async def _nobody_is_there(_url: str) -> None:
    raise LoginError(_WANTED)


async def _nobody_comes_back() -> AuthorizationCodeResult:
    raise LoginError(_WANTED)


def _port(settings: ServerConfig) -> int:
    return settings.oauth.redirect_port if settings.oauth is not None else 0


def _parsed(model: type[_Model], value: object) -> _Model | None:
    try:
        return model.model_validate(value) if value is not None else None
    except ValidationError:
        return None
