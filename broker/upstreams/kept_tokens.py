"""The tokens that servers behind HTTP gave us: in the system's keyring, or where there is none in a file of mode 0600.

Above: oauth.py, login.py and `codemode mcp logout`. Below: keyrings.py. The redactor is told of each token.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import anyio
import platformdirs
from filelock import FileLock, Timeout
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import BaseModel, ValidationError

from broker import keyrings
from broker.errors import LoginError
from broker.upstreams.oauth_settings import OAuthClient
from broker.whole_file import write_whole
from sandbox.private_folder import make_private_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

SERVICE = "codemode-broker"

_ASKED = {"grant", "client_id", "issuer", "scopes"}
"""What of an OAuthClient decides which tokens it is given."""

_LENGTHS = range(8, 16_385)
"""How many characters a token has: it travels in a header."""

_LOOK_SECONDS = 0.05
"""How often a process looks whether another one has its new tokens."""

_Model = TypeVar("_Model", bound=BaseModel)


class KeptTokens:
    """The tokens of one client at one server, and its registration there. The SDK's `TokenStorage`."""

    def __init__(self, url: str, learn: Callable[[str], None] | None = None, client: OAuthClient | None = None) -> None:
        """Store for a URL; `learn` is told of each token, which is a secret from then on.

        A client has tokens of its own: those of another account, or for other scopes, are not for it.
        """
        asked = (client or OAuthClient()).model_dump(mode="json", include=_ASKED, exclude_defaults=True)
        self._user = hashlib.sha256(f"{url}{json.dumps(asked) if asked else ''}".encode()).hexdigest()
        self._learn = learn

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens, or None."""
        tokens = _parsed(OAuthToken, self._read().get("tokens"))
        self._tell(tokens)
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens.

        Raises:
            LoginError: They are none: redacted wherever they occur, very short ones would take all text apart, and
                others could not be sent with any later request.
        """
        if not all(map(_is_token, _secrets(tokens))):
            raise LoginError(
                "the authorization server gave a token that is far too short or too long, or no plain text"
            )
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

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Let no other process of the user get new tokens meanwhile; one that dies lets go of it."""
        path = self._file().with_suffix(".lock")
        lock = FileLock(path, mode=0o600, blocking=False)
        with suppress(OSError):  # a folder that cannot be written; then the keyring has the tokens
            make_private_folder(path.parent)
            while not lock.is_locked:
                try:
                    lock.acquire()
                except Timeout:
                    await anyio.sleep(_LOOK_SECONDS)
        try:
            yield
        finally:
            lock.release()

    def _tell(self, tokens: OAuthToken | None) -> None:
        if self._learn is not None and tokens is not None:
            for secret in _secrets(tokens):
                self._learn(secret)

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
        keyrings.forget(SERVICE, self._user)  # what it still has would be read first
        path = self._file()
        make_private_folder(path.parent)
        write_whole(path, [text])

    def _file(self) -> Path:
        return tokens_folder() / f"{self._user}.json"


class NewTokens(KeptTokens):
    """Those of a login that is going on, which begins with nothing: what is kept stays until it is given tokens."""

    def __init__(self, url: str, client: OAuthClient) -> None:
        """Keep for a URL."""
        super().__init__(url, client=client)
        self._document: dict[str, object] = {}

    def _read(self) -> dict[str, object]:
        return self._document

    def _write(self, document: dict[str, object]) -> None:
        self._document = document
        if "tokens" in document:
            super()._write(document)


def _secrets(tokens: OAuthToken) -> list[str]:
    return [secret for secret in (tokens.access_token, tokens.refresh_token) if secret is not None]


def _is_token(secret: str) -> bool:
    """Tell whether a text has the length and the characters of a token (RFC 6749, appendix A.12 and A.17)."""
    return len(secret) in _LENGTHS and secret.isascii() and secret.isprintable()


def tokens_folder() -> Path:
    """Return where tokens are where there is no keyring."""
    return platformdirs.user_data_path("codemode-broker") / "tokens"


def _parsed(model: type[_Model], value: object) -> _Model | None:
    try:
        return model.model_validate(value) if value is not None else None
    except ValidationError:
        return None
