"""What is wrong with a config, in sentences that name server and key and say what to write instead.

Above: config.py. Below: pydantic, value_faults.py, and policy_problems.py for the policy. No sentence holds a
value: those of `env` and `headers` are secrets.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from broker.authorization.policy_config import PolicyConfig
from broker.authorization.policy_problems import policy_problems
from broker.config import other_forms
from broker.config.value_faults import words_for
from broker.disclosure.settings import CategorySettings
from broker.server.settings import OAuthSettings
from broker.upstreams import carried_text, oauth_settings
from broker.upstreams.server_config import ServerConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

_SERVER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
# What `tools` has beside the servers: a server of such a name could not be imported.
_TAKEN_NAMES = re.compile(r"Tool[A-Za-z]*")
_CATEGORIES = ("disclosure", "categories")


def top_problems(document: dict[str, Any], model: type[BaseModel]) -> list[str]:
    """Return what is wrong with the top-level keys; those that resemble no known key share one sentence."""
    if said := other_forms.of_document(document):
        return [said]
    known = ["mcpServers", *_sections(model)]
    unknown = {key: _nearest(key, known) for key in document if key not in known}
    problems = [f"unknown key {key!r}; did you mean '{near}'?" for key, near in unknown.items() if near]
    if foreign := [repr(key) for key, near in unknown.items() if not near]:
        keys = f"unknown key{'s' if len(foreign) > 1 else ''} {', '.join(foreign)}"
        copy = "If this is the config of another client, `codemode mcp import --from FILE` takes its servers over"
        problems.append(f"{keys}; known are {', '.join(known)}. {copy}")
    if "mcpServers" not in {*other_forms.with_servers_named(document), *unknown.values()}:
        problems.append("'mcpServers' is missing")
    return problems


def shape_problems(document: dict[str, Any], model: type[BaseModel]) -> list[str]:
    """Return the unknown keys of sections and servers, each with the most similar known one."""
    problems: list[str] = []
    if other_forms.of_document(document):
        return problems
    for name, section_model in _sections(model).items():
        if name == "policy":
            continue  # its faults are told by rule
        section, known = document.get(name), list(getattr(section_model, "model_fields", ()))
        inner = _inner_keys(section_model)
        problems += [_unknown(key, known, f"{name}: ", inner) for key in _keys(section) if key not in known]
    servers = document.get("mcpServers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        for key in server if isinstance(server, dict) else ():
            if key not in ServerConfig.model_fields:
                problems.append(_unknown(key, list(ServerConfig.model_fields), f"server {name!r}: "))
            elif key == "type" and server[key] == "sse":
                remedy = "give the streamable HTTP 'url'"
                problems.append(f"server {name!r}: type 'sse' is the transport of 2024, not supported; {remedy}")
    return problems


def _sections(model: type[BaseModel]) -> dict[str, Any]:
    return {name: field.annotation for name, field in model.model_fields.items() if name != "servers"}


def name_problems(names: Iterable[str]) -> list[str]:
    """Return the names that servers cannot have: the tool `c` of a server `a.b` would be the tool `b.c` of `a`."""
    problems = []
    for name in names:
        if not _SERVER_NAME.fullmatch(name):
            problems.append(
                f"server {name!r}: a name is 1 to 64 letters, digits, '_' and '-' and begins with a letter; "
                "scripts import it"
            )
        elif _TAKEN_NAMES.fullmatch(name):
            problems.append(f"server {name!r}: names like 'ToolError' are taken in scripts; choose another")
    return problems


def validation_problems(
    error: ValidationError, document: dict[str, Any], expanded: dict[str, Any], unset: Collection[tuple[str, ...]]
) -> Iterator[str]:
    """Yield the faults in a config that pydantic found and the other functions here do not report.

    Args:
        error: What it found.
        document: The config as it was written.
        expanded: The same with the values of variables.
        unset: Where variables without a value are; these are reported already.
    """
    for fault in error.errors(include_input=False, include_url=False):
        location = fault["loc"]
        if tuple(map(str, location)) not in unset and len(location) > 0 and not _seen(fault, document):
            yield _sentence(fault)
    try:
        PolicyConfig.model_validate(expanded.get("policy", {}))
    except ValidationError as faults:
        yield from policy_problems(faults, document.get("policy"), PolicyConfig)


def data_problems(data: Any, location: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the parts of a program's data that JSON cannot write.

    Raises:
        RecursionError: It is nested too deep, or contains itself.
    """
    if isinstance(data, dict):
        for key, value in data.items():
            if not isinstance(key, str):
                yield f"{place((*location, str(key)))}its key must be text, and is of type {type(key).__name__}"
            yield from data_problems(value, (*location, str(key)))
    elif isinstance(data, list | tuple):
        for index, item in enumerate(data):
            yield from data_problems(item, (*location, str(index)))
    elif not isinstance(data, str | int | float | None):
        kinds = "text, a number, True, False, None, a list or a dict"
        yield f"{place(location)}must be {kinds}, and is of type {type(data).__name__}"


def place(location: tuple[str, ...]) -> str:
    """Return `server 'git': env.TOKEN ` for `("mcpServers", "git", "env", "TOKEN")`."""
    if location[:1] != ("mcpServers",):
        return f"{'.'.join(location)}: "
    if len(location) == 1:
        return "'mcpServers': "
    field = f"{'.'.join(location[2:])}: " if len(location) > 2 else ""  # noqa: PLR2004  # the field is third
    return f"server {location[1]!r}: {field}"


def _inner_keys(model: Any) -> dict[str, str]:
    """Return the keys of what is inside a section, each with the key of the section that it belongs into."""
    own = getattr(model, "model_fields", {})
    parts = [(name, part) for name, field in own.items() for part in (field.annotation, *get_args(field.annotation))]
    return {key: name for name, part in parts for key in _field_names(part)}


def _field_names(part: Any) -> Iterable[str]:
    return [field.name for field in fields(part)] if is_dataclass(part) else getattr(part, "model_fields", ())


def _keys(section: Any) -> list[str]:
    return list(section) if isinstance(section, dict) else []


def _unknown(key: str, known: list[str], where: str, inner: Mapping[str, str] = MappingProxyType({})) -> str:
    if said := other_forms.of_key(key):
        return f"{where}unknown key {key!r}: {said}"
    if key in inner:
        return f"{where}unknown key {key!r}; it belongs into '{inner[key]}'"
    near = _nearest(key, known)
    hint = f"did you mean '{near}'?" if near else f"known are {', '.join(known)}"
    return f"{where}unknown key {key!r}; {hint}"


def _nearest(key: str, known: list[str]) -> str:
    """Return the key that was probably meant by another program's key or a mistyped one; empty if there is none."""
    lowered = {name.lower(): name for name in known} | other_forms.ALIASES
    lowered = {alias: name for alias, name in lowered.items() if name in known}
    near = difflib.get_close_matches(key.lower(), lowered, n=1)
    return lowered[near[0]] if near else ""


def _seen(error: ErrorDetails, document: dict[str, Any]) -> bool:
    """Tell whether `shape_problems` or the policy reports this fault already."""
    location = error["loc"]
    if location[0] == "policy":
        return True
    if error["type"] == "extra_forbidden":
        return len(location) <= (3 if location[0] == "mcpServers" else 2)  # a server's key, or a section's
    if location[0] != "mcpServers":
        return False
    server = (document.get("mcpServers") or {}).get(location[1], {}) if len(location) > 1 else {}
    return location[-1] == "type" and isinstance(server, dict) and server.get("type") == "sse"


def _inner_model(location: tuple[str, ...]) -> type[BaseModel]:
    """Return what may be below a section or a server: a category, or else `oauth`."""
    if location[:2] == _CATEGORIES:
        return CategorySettings
    return oauth_settings.OAuthClient if location[0] == "mcpServers" else OAuthSettings


def _sentence(error: ErrorDetails) -> str:
    location = tuple(str(part) for part in error["loc"])
    if location[-1] == "[key]":
        location = location[:-1]
    match error["type"]:
        case "transport":
            return f"{place(location)[:-2]} {error['msg']}"
        case "extra_forbidden":
            return _unknown(location[-1], list(_inner_model(location).model_fields), place(location[:-1]))
        case "sandbox_limits" | oauth_settings.INCOMPLETE | carried_text.KIND:
            words = error["msg"]
        case "string_unicode":
            words = carried_text.HALF_A_PAIR
        case "string_type" if location[-1] == "command":
            words = "must be text; what follows the program goes into 'args'"
        case "model_type" if location[:2] == _CATEGORIES:
            words = "must be a list of patterns, or an object with 'tools' and a 'description'"
        case "tuple_type" if location[-1] == "args":
            words = 'must be a list, as in ["--verbose"]'
        case _:
            words = words_for(error)
    return f"{place(location)}{words}"
