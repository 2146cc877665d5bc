"""The grants that `--allow` gives, and notes on stderr about those that allow nothing.

Above: the commands that have the option. Below: the grants of broker.authorization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker import Grant, PatternError
from broker.authorization.idle_parts import unknown_arguments
from broker.authorization.model_calls import SERVER
from broker.authorization.patterns import has_wildcards, literal, matcher
from broker.cli.terminal import Problem, note
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker import Config
    from broker.tools.catalog import Catalog

_UNLISTED_CHARACTERS = 400


def grants_of(patterns: tuple[str, ...]) -> list[Grant]:
    """Return the grants that `--allow` options give.

    Raises:
        Problem: A pattern can match nothing.
    """
    try:
        return [Grant.parse(pattern) for pattern in patterns]
    except PatternError as error:
        raise Problem(f"--allow: {error}") from None


def report_idle(grants: Iterable[Grant], config: Config) -> None:
    """Name on stderr the grants for servers that the config does not have, mostly typing errors."""
    for grant in grants:
        server = grant.pattern.partition(".")[0]
        if config.servers and server not in {*config.servers, SERVER} and not has_wildcards(server):
            note(f"--allow {grant.pattern}: the config has no server {server!r}; it has {', '.join(config.servers)}")


def report_unlisted(grants: Iterable[Grant], catalog: Catalog) -> None:
    """Name on stderr the grants that match no tool of their server, or test an argument that none of them takes.

    Servers that have not listed their tools in full are left out.
    """
    for grant in grants:
        tools = catalog.of_server(grant.pattern.partition(".")[0])
        matches = matcher(grant.pattern)
        matched = [tool for tool in tools if matches(tool.qualified_name)]
        if tools and not matched:
            near = catalog.suggest(literal(grant.pattern))
            _note(grant, "there is no such tool" + (f"; did you mean {' or '.join(near)}?" if near else ""))
        elif matched and grant.arguments is not None and all(tool.is_complete for tool in matched):
            for fault in unknown_arguments((tool.spec for tool in matched), grant.arguments.tests):
                _note(grant, fault)


def _note(grant: Grant, what: str) -> None:
    note(one_line(f"--allow {grant.pattern}: {what}", _UNLISTED_CHARACTERS))
