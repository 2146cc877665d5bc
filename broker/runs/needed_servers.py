"""Whether a recorded run can go on with the servers that are there.

Above: execution.py. Below: the state of the servers. The error that a script gets from a server that cannot be called
may end its run for good; a run that is left can be resumed when the server is back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import UnavailableError
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.upstreams.upstream import Upstream

_NAME_CHARACTERS = 100
_PROBLEM_CHARACTERS = 300


def check_servers(run_id: str, names: Iterable[str], upstreams: Mapping[str, Upstream]) -> None:
    """Refuse to resume a run whose script may call a server that is not there, is disabled or is down.

    Raises:
        UnavailableError: The text names each such server, and says what to do about it.
    """
    lacking = {name: problem for name in sorted(names) if (problem := _problem(upstreams.get(name)))}
    if not lacking:
        return
    servers = [
        f"server {one_line(name, _NAME_CHARACTERS)}, whose tools its script may call, {problem}"
        for name, problem in lacking.items()
    ]
    said = f" {servers[0]}" if len(servers) == 1 else "".join(f"\n  - {server}" for server in servers)
    raise UnavailableError(next(iter(lacking)), f"{run_id} was not resumed:{said}")


def _problem(upstream: Upstream | None) -> str:
    """Return what keeps a server from being called, as the rest of a sentence, and a remedy; empty if nothing does."""
    if upstream is None:
        return "is not in the config. Resume it with the config, and in a program the `servers`, that it began with."
    status = upstream.status
    if status.is_usable:
        return ""
    problem = f": {one_line(status.problem, _PROBLEM_CHARACTERS)}" if status.problem else ""
    enable = "Take `disabled` out of its settings." if status.state == "disabled" else "Resume the run when it is back."
    return f"is {status.state}{problem}. {status.what_to_do or enable}"
