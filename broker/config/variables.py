"""`${VAR}`, `${env:VAR}` and `${VAR:-default}`, `env://VAR` and `keyring://SERVICE/USER` in the strings of a config.

Above: config.py. Below: keyrings.py. Values are read from a mapping that the caller gives, and from the system's
keyring; what came from them is remembered, so that it can be kept out of everything that leaves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from broker.config.other_forms import of_variable
from broker.keyrings import KeyringError, password

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BEHIND_A_WORD = re.compile(r"(Bearer|Basic|Token) (env|keyring)://", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_UNCLOSED = re.compile(r"\$\{(?:env:)?[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
GIVEN = frozenset({"CONFIG_DIR"})
"""Variables that every config has, whatever the environment has."""


def references(value: Any) -> Iterator[str]:
    """Yield the variables of the environment that a JSON value needs: those that it refers to without a default."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from references(item)
    elif isinstance(value, str) and value.startswith("env://"):
        yield value.removeprefix("env://")
    elif isinstance(value, str):
        parsed = (_NAME.fullmatch(found) for found in _REFERENCE.findall(value[: value.rfind("}") + 1]))
        yield from (found[1] for found in parsed if found and found[2] is None and found[1] not in GIVEN)


class Expansion:
    """Replaces references in JSON values and collects what is wrong with them.

    Attributes:
        problems: One `(path, sentence)` for each reference that could not be replaced.
        resolved: Every value that came from the environment or a keyring.
    """

    def __init__(self, environment: Mapping[str, str], given: Mapping[str, str]) -> None:
        """Take names from `given` first; those are not treated as secret."""
        self._environment = environment
        self._given = given
        self.problems: list[tuple[tuple[str, ...], str]] = []
        self.resolved: set[str] = set()

    def expand(self, value: Any, path: tuple[str, ...] = ()) -> Any:
        """Return the value with every string in it expanded; keys of objects stay as they are."""
        if isinstance(value, str):
            return self._expanded(value, path)
        if isinstance(value, list):
            return [self.expand(item, (*path, str(index))) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.expand(item, (*path, key)) for key, item in value.items()}
        return value

    def _expanded(self, value: str, path: tuple[str, ...]) -> str:
        if value.startswith("env://"):
            return self._variable(value.removeprefix("env://"), path)
        if value.startswith("keyring://"):
            return self._from_keyring(value.removeprefix("keyring://"), path)
        if _BEHIND_A_WORD.match(value):
            self.problems.append((path, "env:// and keyring:// stand for a whole value; write Bearer ${NAME}"))
            return ""
        # Behind the last brace nothing can match, and each "${" there would look to the end.
        referring, brace, rest = value.rpartition("}")
        if unclosed := _UNCLOSED.search(rest):
            self.problems.append((path, f"{unclosed[0]} has no closing brace; write {unclosed[0]}}}"))
            return ""
        return _REFERENCE.sub(lambda match: self._replacement(match, path), referring + brace) + rest

    def _variable(self, name: str, path: tuple[str, ...]) -> str:
        value = self._environment.get(name)
        if not value:
            self.problems.append((path, f"the environment variable {name} is not set, or empty; set it"))
            return ""
        self.resolved.add(value)
        return value

    def _from_keyring(self, place: str, path: tuple[str, ...]) -> str:
        service, slash, user = place.rpartition("/")
        if not slash or not service or not user:
            self.problems.append((path, "is not a place in a keyring; write keyring://SERVICE/USER"))
            return ""
        try:
            value = password(service, user)
        except KeyringError as error:
            self.problems.append((path, str(error)))
            return ""
        if not value:
            what_to_do = f"put it there with: keyring set {service} {user}"
            self.problems.append((path, f"the keyring holds no password of {user} for {service}; {what_to_do}"))
            return ""
        self.resolved.add(value)
        return value

    def _replacement(self, match: re.Match[str], path: tuple[str, ...]) -> str:
        if (said := of_variable(match[1])) and match[1] not in self._environment:
            self.problems.append((path, f"{match[0]} {said}"))
            return ""
        parsed = _NAME.fullmatch(match[1])
        if parsed is None:
            self.problems.append((path, f"{match[0]} is not a variable; write ${{NAME}} or ${{NAME:-default}}"))
            return ""
        name, default = parsed.groups()
        if name in self._given:
            return self._given[name]
        value = self._environment.get(name)
        # As in a shell, `:-` also replaces an empty value.
        if value is None or (value == "" and default is not None):
            if default is None:
                self.problems.append(
                    (path, f"the environment variable {name} is not set; set it or write ${{{name}:-default}}")
                )
            return default or ""
        self.resolved.add(value)
        return value
