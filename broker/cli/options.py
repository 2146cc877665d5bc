"""The options that several commands share, so that each is called the same everywhere. Above: the `*_commands.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

CONFIG_VARIABLE = "CODEMODE_CONFIG"

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        envvar=CONFIG_VARIABLE,
        help="Config with the MCP servers, in the `mcpServers` JSON form.",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        "-a",
        metavar="PATTERN",
        help="Allow calls to the tools that match, as server.tool; * and ? match. Repeat for more.",
    ),
]
Isolation = Annotated[
    Literal["process", "thread"] | None,
    typer.Option(
        "--isolation",
        help="Where the script runs: in a confined process (the default, unless the config says otherwise), or in "
        "this one, where nothing confines a script that escapes from WebAssembly.",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log to stderr what the broker does.")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log to stderr, one JSON object per line.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value on stdout.")]
AsJsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line on stdout.")]
