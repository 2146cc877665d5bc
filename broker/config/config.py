"""The `mcpServers` JSON that people already have, read into checked models.

Above: the broker and the command line. Below: pydantic, variables.py for `${VAR}`, problems.py, and a model for
each section. A config is wholly right or it is one `ConfigError` that lists every problem.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from broker.audit.settings import AuditSettings
from broker.authorization.policy_config import PolicyConfig
from broker.config import other_forms
from broker.config.problems import (
    data_problems,
    name_problems,
    place,
    shape_problems,
    top_problems,
    validation_problems,
)
from broker.config.sandbox_settings import SandboxSettings
from broker.config.text import TOO_DEEP, TOO_LONG, decoded, missing, read_text
from broker.config.variables import Expansion
from broker.disclosure.settings import DisclosureSettings
from broker.errors import ConfigError
from broker.recordings.settings import RecordingSettings
from broker.redaction import Redactor
from broker.server.settings import ServeSettings
from broker.upstreams.server_config import ServerConfig  # noqa: TC001  # pydantic reads it

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LEAST_SECRET_CHARACTERS = 6
"""Shorter values are not redacted: they would blank out words."""

_SECRET_KEY = re.compile(r"(?i)token|secret|password|passwd|credential|api_?key|auth")


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
    disclosure: DisclosureSettings = DisclosureSettings()
    policy: PolicyConfig = PolicyConfig()
    audit: AuditSettings = AuditSettings()
    _resolved: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def secrets(self) -> frozenset[str]:
        """Values to keep out of everything that leaves: what variables held, headers, secret-looking `env`."""
        return _secrets((*self._resolved, *_written_secrets(self.servers), *self.serve.tokens.values()))

    @classmethod
    def load(cls, path: Path | str, *, environment: Mapping[str, str] | None = None) -> Config:
        """Read a config file.

        Args:
            path: A JSON file.
            environment: Where `${VAR}` is looked up; the process environment when left out.

        Raises:
            ConfigError: The file cannot be read or is wrong; the text lists every problem.
        """
        text = read_text(Path(path))
        try:
            folder = Path(path).resolve().parent
        except FileNotFoundError:  # it was reached from a folder that was removed
            raise ConfigError(str(path), [missing(Path(path))]) from None
        return cls.parse(text, source=str(path), folder=folder, environment=environment)

    @classmethod
    def parse(cls, text: str, *, source: str, folder: Path, environment: Mapping[str, str] | None = None) -> Config:
        """Read config text; `source` names it in errors, `folder` is `${CONFIG_DIR}`.

        Raises:
            ConfigError: The text is wrong; the error lists every problem.
        """
        written = decoded(text, source)
        document = other_forms.with_servers_named(written)
        expansion = Expansion(os.environ if environment is None else environment, {"CONFIG_DIR": str(folder)})
        expanded = expansion.expand(document)
        servers = document.get("mcpServers")
        problems = top_problems(written, cls) + shape_problems(document, cls)
        problems += name_problems(servers if isinstance(servers, dict) else ())
        problems += [f"{place(path)}{sentence}" for path, sentence in expansion.problems]
        try:
            config = cls.model_validate(expanded)
        except ValidationError as error:
            unset = {path for path, _ in expansion.problems}
            problems += validation_problems(error, document, expanded, unset)
            hide = Redactor(_secrets(expansion.resolved))
            raise ConfigError(source, [hide(problem) for problem in problems]) from None
        if problems:
            raise ConfigError(source, problems)
        return config.finished(folder, expansion.resolved)

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Config:
        """Read data of the form of a file; `${CONFIG_DIR}` is the folder that the process works in.

        Without `mcpServers` it has no servers: those of a program may all be its own.

        Raises:
            ConfigError: The data is wrong; the text lists every problem.
        """
        source, document = "config", dict(data)
        if "mcpServers" not in other_forms.with_servers_named(document) and not other_forms.of_document(document):
            document["mcpServers"] = {}
        try:
            problems = list(data_problems(document))
            text = "" if problems else json.dumps(document)
        except RecursionError:
            raise ConfigError(source, [TOO_DEEP]) from None
        except ValueError:
            raise ConfigError(source, [TOO_LONG]) from None
        if problems:
            raise ConfigError(source, problems)
        return cls.parse(text, source=source, folder=Path.cwd())

    def finished(self, folder: Path, resolved: set[str]) -> Config:
        """Return the config with absolute folders; what was `resolved` from variables is secret from then on."""
        servers = {
            name: server.model_copy(update={"cwd": folder / server.cwd}) if server.cwd is not None else server
            for name, server in self.servers.items()
        }
        finished = self.model_copy(update={"servers": servers})
        finished._resolved = frozenset(resolved)  # noqa: SLF001  # a private attribute of this class
        return finished


def _secrets(values: Iterable[str]) -> frozenset[str]:
    return frozenset(value for value in values if len(value) >= LEAST_SECRET_CHARACTERS)


def _written_secrets(servers: Mapping[str, ServerConfig]) -> Iterable[str]:
    for server in servers.values():
        for value in server.headers.values():
            yield value
            yield value.rpartition(" ")[2]  # `Bearer TOKEN`: the token alone
        if server.oauth is not None and server.oauth.client_secret is not None:
            yield server.oauth.client_secret
        yield from (value for key, value in server.env.items() if _SECRET_KEY.search(key))
