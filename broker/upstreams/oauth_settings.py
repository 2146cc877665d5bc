"""What an operator sets about OAuth of one server: `oauth` in its entry.

Above: server_config.py, and oauth.py, which loads the SDK. Below: pydantic.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

INCOMPLETE = "incomplete_client"
"""Of the error raised here: it is a whole sentence."""


class OAuthClient(BaseModel):
    """How to get tokens for a server behind HTTP.

    Attributes:
        grant: `authorization_code`: a person logs in once with `codemode mcp login`; `client_credentials`: the
            broker has an account of its own.
        client_id: Of a client that is registered already; left out, the broker registers itself.
        client_secret: Its secret, best as `env://` or `keyring://`.
        issuer: The authorization server to which the credentials belong; others are not given them.
        scopes: What to ask for, and nothing else; the server names them when left out.
        redirect_port: Where the browser comes back to; any free port when 0.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    client_id: str | None = Field(default=None, min_length=1)
    client_secret: str | None = Field(default=None, min_length=1, repr=False)
    issuer: str | None = None
    scopes: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    redirect_port: int = Field(default=0, ge=0, le=65_535)

    @model_validator(mode="after")
    def _complete(self) -> OAuthClient:
        if self.grant == "client_credentials":
            given = {"client_id": self.client_id, "client_secret": self.client_secret, "issuer": self.issuer}
            if missing := [name for name, value in given.items() if value is None]:
                raise PydanticCustomError(INCOMPLETE, f"client_credentials needs {', '.join(missing)}")
        return self
