"""The `mcpServers` JSON that people already have, read into checked models.

Above: the broker and the command line. Below: pydantic, and variables.py for `${VAR}`. A config is wholly
right or it is one `ConfigError` that lists every problem. The text of an error never holds a value: those of
`env` and `headers` are secrets.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from broker.audit_settings import AuditSettings
from broker.authorization.faults import policy_problems
from broker.authorization.policy import Label, PolicyConfig
from broker.disclosure.disclosure_config import DisclosureConfig, ToolPattern
from broker.errors import ConfigError
from broker.recordings.settings import RecordingSettings
from broker.sandbox_settings import SandboxSettings
from broker.server.settings import ServeSettings
from broker.upstreams.oauth_settings import OAuthClient  # noqa: TC001  # pydantic reads it
from broker.variables import Expansion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pydantic_core import ErrorDetails

SERVER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
LEAST_SECRET_CHARACTERS = 6
"""Shorter values are not redacted: they would blank out words."""

_SECRET_KEY = re.compile(r"(?i)token|secret|password|passwd|credential|api_?key|auth")
# What `tools` has beside the servers: a server of such a name could not be imported.
_TAKEN_NAMES = re.compile(r"Tool[A-Za-z]*")

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


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

    command: str | None = Field(default=None, min_length=1)
    args: tuple[str, ...] = Field(default=(), repr=False)
    env: dict[str, str] = Field(default={}, repr=False)
    cwd: Path | None = None
    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    url: str | None = Field(default=None, repr=False, pattern=r"^https?://[^/\s]+")
    headers: dict[str, str] = Field(default={}, repr=False)
    oauth: OAuthClient | None = None
    disabled: bool = False
    mode: Literal["auto", "legacy", "2026-07-28"] = "auto"
    connect_timeout_seconds: Seconds = 30.0
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


class Config(BaseModel):
    """A whole config. `Config()` has no servers; `Config.load(path)` reads a file.

    Attributes:
        servers: By name; `mcpServers` in the file.
        image: Name of the guest image that scripts run on; see `codemode image build`.
        sandbox: Where scripts run and within what bounds.
        recordings: How runs are recorded.
        serve: How `codemode serve` serves.
        disclosure: How much of the tools is shown when.
        policy: What may be called; see `PolicyConfig`.
        audit: How long the records of calls are kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    servers: dict[str, ServerConfig] = Field(default={}, validation_alias="mcpServers")
    image: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    sandbox: SandboxSettings = SandboxSettings()
    recordings: RecordingSettings = RecordingSettings()
    serve: ServeSettings = ServeSettings()
    disclosure: DisclosureConfig = DisclosureConfig()
    policy: PolicyConfig = PolicyConfig()
    audit: AuditSettings = AuditSettings()
    _secrets: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def secrets(self) -> frozenset[str]:
        """Values to keep out of everything that leaves: what variables held, headers, secret-looking `env`."""
        return self._secrets

    @classmethod
    def load(cls, path: Path | str, *, environment: Mapping[str, str] | None = None) -> Config:
        """Read a config file.

        Args:
            path: A JSON file.
            environment: Where `${VAR}` is looked up; the process environment when left out.

        Raises:
            ConfigError: The file cannot be read or is wrong; the text lists every problem.
        """
        source = str(path)
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise ConfigError(source, ["there is no such file"]) from None
        except UnicodeDecodeError:
            raise ConfigError(source, ["is not UTF-8 text; save it as UTF-8"]) from None
        except OSError as error:
            raise ConfigError(source, [f"cannot be read: {error.strerror}"]) from None
        return cls.parse(text, source=source, folder=Path(path).resolve().parent, environment=environment)

    @classmethod
    def parse(cls, text: str, *, source: str, folder: Path, environment: Mapping[str, str] | None = None) -> Config:
        """Read config text; `source` names it in errors, `folder` is `${CONFIG_DIR}`.

        Raises:
            ConfigError: The text is wrong; the error lists every problem.
        """
        document = _decoded(text, source)
        expansion = Expansion(os.environ if environment is None else environment, {"CONFIG_DIR": str(folder)})
        expanded = expansion.expand(document)
        problems = [*_shape_problems(document), *_name_problems(document)]
        problems += [f"{_place(path)}{sentence}" for path, sentence in expansion.problems]
        unset = {path[: len(path)] for path, _ in expansion.problems}
        try:
            config = cls.model_validate(expanded)
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False)
            problems += [
                _sentence(one)
                for one in found
                if tuple(map(str, one["loc"])) not in unset and len(one["loc"]) > 0 and not _seen(one, document)
            ]
            problems += _policy_problems(document, expanded)
            raise ConfigError(source, problems) from None
        if problems:
            raise ConfigError(source, problems)
        return config.finished(folder, expansion.resolved)

    def finished(self, folder: Path, resolved: set[str]) -> Config:
        """Return the config with absolute folders and its secrets noted; `resolved` came from variables."""
        servers = {
            name: server.model_copy(update={"cwd": folder / server.cwd}) if server.cwd is not None else server
            for name, server in self.servers.items()
        }
        finished = self.model_copy(update={"servers": servers})
        finished._secrets = frozenset(  # noqa: SLF001  # a private attribute of this class
            value
            for value in (*resolved, *_written_secrets(servers), *self.serve.tokens.values())
            if len(value) >= LEAST_SECRET_CHARACTERS
        )
        return finished


def _written_secrets(servers: Mapping[str, ServerConfig]) -> Iterable[str]:
    for server in servers.values():
        for value in server.headers.values():
            yield value
            yield value.rpartition(" ")[2]  # `Bearer TOKEN`: the token alone
        if server.oauth is not None and server.oauth.client_secret is not None:
            yield server.oauth.client_secret
        yield from (value for key, value in server.env.items() if _SECRET_KEY.search(key))


def _decoded(text: str, source: str) -> Any:
    try:
        document = json.loads(text, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{source}:{error.lineno}:{error.colno}", [f"is not JSON: {error.msg.lower()}"]) from None
    except RecursionError:
        raise ConfigError(source, ["is nested too deep"]) from None
    except _DuplicateKeyError as error:
        raise ConfigError(source, [f"the key {error.args[0]!r} is given twice in one object"]) from None
    if not isinstance(document, dict):
        raise ConfigError(source, ['must be a JSON object, as in {"mcpServers": {…}}'])
    return document


def _policy_problems(document: dict[str, Any], expanded: dict[str, Any]) -> Iterator[str]:
    try:
        PolicyConfig.model_validate(expanded.get("policy", {}))
    except ValidationError as error:
        yield from policy_problems(error, document.get("policy"), PolicyConfig)


class _DuplicateKeyError(Exception):
    """Two equal keys in one JSON object: the last would win in silence."""


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise _DuplicateKeyError(key)
    return dict(pairs)


def _shape_problems(document: dict[str, Any]) -> list[str]:
    """Unknown keys, each with the nearest valid one."""
    sections = {name: field.annotation for name, field in Config.model_fields.items() if name != "servers"}
    known = ["mcpServers", *sections]
    problems = [_unknown(key, known, "") for key in document if key not in known]
    for name, model in sections.items():
        if name == "policy":
            continue  # its faults are told by rule
        section, fields = document.get(name), list(getattr(model, "model_fields", ()))
        problems += [_unknown(key, fields, f"{name}: ") for key in _keys(section) if key not in fields]
    servers = document.get("mcpServers")
    if servers is None:
        problems.append("'mcpServers' is missing")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        for key in server if isinstance(server, dict) else ():
            if key not in ServerConfig.model_fields:
                problems.append(_unknown(key, list(ServerConfig.model_fields), f"server {name!r}: "))
            elif key == "type" and server[key] == "sse":
                problems.append(f"server {name!r}: type 'sse' is the transport of 2024; give the streamable HTTP 'url'")
    return problems


def _keys(section: Any) -> list[str]:
    return list(section) if isinstance(section, dict) else []


def _unknown(key: str, known: list[str], place: str) -> str:
    lowered = {name.lower(): name for name in known} | {"servers": "mcpServers", "timeout": "call_timeout_seconds"}
    lowered |= {"environment": "env", "workingdirectory": "cwd", "enabled": "disabled"}
    lowered = {alias: name for alias, name in lowered.items() if name in known}
    near = difflib.get_close_matches(key.lower(), lowered, n=1)
    hint = f"; did you mean '{lowered[near[0]]}'?" if near else f"; known are {', '.join(known)}"
    return f"{place}unknown key {key!r}{hint}"


def _name_problems(document: dict[str, Any]) -> list[str]:
    servers = document.get("mcpServers")
    problems = []
    for name in servers if isinstance(servers, dict) else ():
        if not SERVER_NAME.fullmatch(name):
            problems.append(
                f"server {name!r}: a name is 1 to 64 letters, digits, '_' and '-' and begins with a letter; "
                "scripts import it"
            )
        elif _TAKEN_NAMES.fullmatch(name):
            problems.append(f"server {name!r}: names like 'ToolError' are taken in scripts; choose another")
    return problems


def _seen(error: ErrorDetails, document: dict[str, Any]) -> bool:
    """Tell whether `_shape_problems` has said it already."""
    location = error["loc"]
    if location[0] == "policy":
        return True
    if error["type"] == "extra_forbidden":
        return location[0] == "mcpServers" or len(location) <= 2  # noqa: PLR2004  # a section and its key
    if location[0] != "mcpServers":
        return False
    server = (document.get("mcpServers") or {}).get(location[1], {}) if len(location) > 1 else {}
    return location[-1] == "type" and isinstance(server, dict) and server.get("type") == "sse"


def _sentence(error: ErrorDetails) -> str:
    location = tuple(str(part) for part in error["loc"])
    if error["type"] == "transport":
        return f"{_place(location)[:-2]} {error['msg']}"
    if error["type"] == "sandbox_limits":
        return f"{_place(location)}{error['msg']}"
    if error["type"] == "extra_forbidden":
        return f"{_place(location)}is not known; remove it"
    message = error["msg"].removeprefix("Input should be ")
    if error["type"] == "string_pattern_mismatch":
        is_url = location[-1] == "url"
        message = "a URL that begins with http:// or https://" if is_url else f"as {error['ctx']['pattern']} describes"
    if error["type"] in {"model_type", "model_attributes_type", "dict_type"}:
        message = "a JSON object"
    message = message.removeprefix("a valid ").replace("tuple", "list")
    return f"{_place(location)}must be {message}"


def _place(location: tuple[str, ...]) -> str:
    """Return `server 'git': env.TOKEN ` for `("mcpServers", "git", "env", "TOKEN")`."""
    if location[:1] != ("mcpServers",):
        return f"{'.'.join(location)}: "
    if len(location) == 1:
        return "'mcpServers': "
    field = f"{'.'.join(location[2:])}: " if len(location) > 2 else ""  # noqa: PLR2004  # the field is third
    return f"server {location[1]!r}: {field}"
