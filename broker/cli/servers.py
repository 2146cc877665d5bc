"""`codemode tools servers`: how each configured server is doing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from broker.cli.configured import LISTING_SECONDS, load_config, open_broker
from broker.cli.exit_codes import ExitCode
from broker.cli.next_command import whole
from broker.cli.terminal import note, write_result, write_table
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from broker.upstreams.server_status import ServerStatus

SAID_CHARACTERS = 300


@dataclass(frozen=True)
class ServersRequest:
    """The arguments of `tools servers`."""

    config: Path | None
    connect: bool
    as_json: bool


async def list_servers(request: ServersRequest) -> ExitCode:
    """Print a line for each server."""
    async with open_broker(load_config(request.config), waits=not request.connect) as broker:
        if request.connect:
            await broker.need_servers(timeout_seconds=LISTING_SECONDS)
        statuses = broker.server_statuses()
    if request.as_json:
        write_result(json.dumps([asdict(status) for status in statuses], indent=2))
    elif statuses:
        write_table(("server", "state", "tools", ""), [_row(status, request) for status in statuses], right={"tools"})
    else:
        note("no servers are configured")
    return ExitCode.COMPLETED


def _row(status: ServerStatus, request: ServersRequest) -> tuple[str, str, str, str]:
    text = "; ".join(filter(None, [status.about, *status.warnings]))
    if status.problem:
        text = ". ".join(filter(None, [status.problem, status.what_to_do]))
    state = f"{status.state} (lazy)" if status.is_lazy and status.state != "asleep" else status.state
    return status.name, state, str(status.tool_count), whole(one_line(text, SAID_CHARACTERS), request)
