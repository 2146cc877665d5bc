"""What an operator sets about serving: `serve` in the config file.

Above: config.py, which holds it, and the modules of this package. Below: pydantic.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from broker.upstreams.carried_text import KIND, HttpUrl, header_value
from sandbox.limits import MIB

StructuredContent = Literal["auto", "always", "never"]
TOKEN_CHARACTERS = 16
"""How short a bearer token may be."""

Token = Annotated[str, Field(min_length=TOKEN_CHARACTERS), AfterValidator(header_value)]


def _of_one_holder_each(tokens: dict[str, str]) -> dict[str, str]:
    if len(set(tokens.values())) < len(tokens):
        raise PydanticCustomError(KIND, "must not give two names the same token: both would be one principal")
    if "" in tokens:
        raise PydanticCustomError(KIND, "must name the holder of each token: an empty name stands for nobody")
    return tokens


class OAuthSettings(BaseModel):
    """The server as an OAuth 2.1 resource server: JSON web tokens of an issuer, made for this resource.

    Attributes:
        issuer: The authorization server; the `iss` of its tokens.
        resource: The URL under which clients reach this server; the `aud` of its tokens.
        jwks_url: Where the issuer's keys are, if not where its metadata says.
        scopes: What a token has to have.
        algorithms: Which signatures are believed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: HttpUrl
    resource: HttpUrl
    jwks_url: HttpUrl | None = None
    scopes: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ("RS256", "ES256")


class ServeSettings(BaseModel):
    """How `codemode serve` serves.

    Attributes:
        mode: What clients are given: `code`, three tools of which one runs scripts, or `tools`, the tools themselves
            with a line each, for clients that write no scripts.
        structured_content: Who gets the envelope of a run beside its text: `auto`, all clients but the agents that are
            known to show it to their model in the place of the text or beside it; `always`; `never`.
        tokens: Bearer tokens by the name of who holds them. Each name is a principal of its own.
        oauth: Tokens of an authorization server; beside `tokens`, not instead.
        allowed_hosts: `Host` headers that are answered, beside those of loopback; `name:*` for any port.
        allowed_origins: `Origin` headers that are answered, beside those of loopback.
        request_bytes: The longest request body.
        request_seconds: How long a client may take to send a request; the time of the answer is not bounded by it.
        answer_seconds: How long a client may take nothing of an answer that waits for it.
        runs_at_once: Scripts that run at the same time; more of them wait.
        runs_waiting: Scripts that wait for their turn; more of them are refused.
        sessions: Sessions at the same time.
        session_idle_seconds: After how long without use a session is dropped.
        grace_seconds: How long scripts may go on when the server is told to end.
        output_tokens: How many tokens a reply to a script has at most; the rest of the output is kept and can be read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["code", "tools"] = "code"
    structured_content: StructuredContent = "auto"
    tokens: Annotated[dict[str, Token], AfterValidator(_of_one_holder_each)] = Field(default={}, repr=False)
    oauth: OAuthSettings | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    request_bytes: int = Field(default=4 * MIB, ge=1_024, le=256 * MIB)
    request_seconds: float = Field(default=30, gt=0, le=3_600)
    answer_seconds: float = Field(default=30, gt=0, le=3_600)
    runs_at_once: int = Field(default=64, ge=1, le=10_000)
    runs_waiting: int = Field(default=1_000, ge=0, le=100_000)
    sessions: int = Field(default=10_000, ge=1, le=1_000_000)
    session_idle_seconds: float = Field(default=3_600, gt=0, le=86_400)
    grace_seconds: float = Field(default=2, ge=0, le=600)
    output_tokens: int = Field(default=6_000, ge=100, le=1_000_000)
