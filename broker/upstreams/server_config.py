"""One entry of `mcpServers`: how to reach a server, and how much to expect of it.

Above: config.py, which holds them by name, and the modules of this package. Below: pydantic.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from broker.authorization.policy_config import Label  # noqa: TC001  # pydantic reads it
from broker.disclosure.settings import ToolPattern  # noqa: TC001  # pydantic reads it
from broker.upstreams.carried_text import (  # noqa: TC001  # pydantic reads them
    HeaderName,
    HeaderValue,
    HttpUrl,
    SystemPath,
    SystemText,
    VariableName,
)
from broker.upstreams.oauth_settings import OAuthClient  # noqa: TC001  # pydantic reads it

Mode: TypeAlias = Literal["auto", "legacy", "2026-07-28"]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]

START_SECONDS = 10.0
"""How long a server may take to be ready, where the config does not say."""

FIRST_START_SECONDS = 30.0
"""The same where its command may download the server first: that took 8 to 22 s where it was measured."""

_PACKAGE_RUNNERS = frozenset(
    {"bun", "bunx", "cargo", "deno", "dnx", "docker", "go", "npm", "npx"}
    | {"pipx", "pnpm", "pnpx", "podman", "uv", "uvx", "yarn"}
)


class ServerConfig(BaseModel):
    """How to reach one server, and how much to expect of it.

    Attributes:
        command: Program of a stdio server; it sees a minimal environment and `env`.
        cwd: Its working directory; a relative one counts from the folder of the config file.
        type: `stdio` or `http`; told from `command` and `url` when left out.
        url: Endpoint of a streamable HTTP server; `headers` go with every request.
        oauth: How to get tokens for `url`, beside `headers`.
        disabled: Keeps the entry without using it.
        mode: Protocol era. `auto` asks the server; `legacy` spares servers that ignore unknown requests
            a wait at connect time; `2026-07-28` sends no handshake at all.
        connect_timeout_seconds: How long the server may take to be ready. Then it is down, and nobody waits for it; it
            is tried again in the background, or when it is next needed if it is lazy.
        lazy: Connect when the server is first searched in, described or called, and disconnect when it is not used.
        idle_seconds: How long a lazy server stays connected unused.
        about: One line on what the server is for; a lazy one is found by it before it was ever connected.
        group: Category of its tools.
        allow_tools: Patterns of the tools that are used, by their names at the server, as in `get_*`; all when left
            out, none when empty.
        hide_tools: Patterns of tools that are left out, also of those allowed. A tool that is left out is not
            listed, found or called.
        labels: What data from or to the server is, for the flow rules of the policy: `private`, `untrusted`,
            `egress`, or words of your own. Left out, the labels of the policy.
        elicitation: Whether the server may ask a person for input while a call of its tools is open. What it asks is
            shown with its name; refused when left out, and where nobody is there.
        trust_annotations: Whether the server's hints about its tools (`readOnlyHint`, …) may be believed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: SystemText | None = Field(default=None, min_length=1)
    args: tuple[SystemText, ...] = Field(default=(), repr=False)
    env: dict[VariableName, SystemText] = Field(default={}, repr=False)
    cwd: SystemPath | None = None
    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    url: HttpUrl | None = Field(default=None, repr=False)
    headers: dict[HeaderName, HeaderValue] = Field(default={}, repr=False)
    oauth: OAuthClient | None = None
    disabled: bool = False
    mode: Mode = "auto"
    connect_timeout_seconds: Seconds = START_SECONDS
    call_timeout_seconds: Seconds = 60.0
    max_pages: int = Field(default=100, ge=1, le=10_000)
    max_tools: int = Field(default=1_000, ge=1, le=100_000)
    lazy: bool = False
    idle_seconds: Seconds = 300.0
    about: str | None = Field(default=None, min_length=1, max_length=300)
    group: str | None = Field(default=None, min_length=1, max_length=80)
    allow_tools: tuple[ToolPattern, ...] | None = None
    hide_tools: tuple[ToolPattern, ...] = ()
    elicitation: bool = False
    trust_annotations: bool = False
    labels: tuple[Label, ...] | None = None

    def offers(self, tool: str) -> bool:
        """Tell whether a tool of this name is used, by the patterns of the config."""
        is_allowed = self.allow_tools is None or any(fnmatchcase(tool, pattern) for pattern in self.allow_tools)
        return is_allowed and not any(fnmatchcase(tool, pattern) for pattern in self.hide_tools)

    @model_validator(mode="before")
    @classmethod
    def _time_to_download(cls, given: Any) -> Any:
        command = given.get("command") if isinstance(given, dict) else None
        is_runner = isinstance(command, str) and Path(command).stem.lower() in _PACKAGE_RUNNERS
        return {"connect_timeout_seconds": FIRST_START_SECONDS} | given if is_runner else given

    @model_validator(mode="after")
    def _one_transport(self) -> ServerConfig:
        if (self.command is None) == (self.url is None):
            said = "both" if self.command else "neither"
            raise PydanticCustomError(
                "transport", f"has {said} of 'command' (a program to start) and 'url' (HTTP); give one"
            )
        stray = _stray_keys(self)
        if stray:
            has = "command" if self.command else "url"
            raise PydanticCustomError("transport", f"has '{has}', so {stray} has no meaning; remove it")
        return self


def _stray_keys(server: ServerConfig) -> str:
    """Name the settings of the other transport that were given, or return an empty text."""
    if server.command is not None:
        stray: list[str] = [key for key in ("headers", "oauth") if key in server.model_fields_set]
        wrong_type = server.type not in {None, "stdio"}
    else:
        stray = [key for key in ("args", "env", "cwd") if key in server.model_fields_set]
        wrong_type = server.type == "stdio"
    if wrong_type:
        stray.append("type")
    return ", ".join(f"'{key}'" for key in stray)
