"""The commands about the servers of a config as the command line accepts them: `mcp`.

Above: app.py, which adds them. Below: the module of each command, imported when it is called.
"""

# Typer reads the annotations while the program runs.
# ruff: noqa: PLC0415, TC001

from __future__ import annotations

from typing import Annotated

import typer

from broker.cli.command_names import BeforeACommand, group
from broker.cli.completed_names import complete_client, complete_server
from broker.cli.options import ConfigFile
from broker.cli.start import start

mcp = group("Add servers to the config, log in to them.")

_Texts = list[str] | None
_Replace = Annotated[bool, typer.Option("--replace", help="Put it in the place of a server of the same name.")]
ServerName = Annotated[
    str, typer.Argument(metavar="SERVER", help="Its name in the config.", autocompletion=complete_server)
]


@mcp.command("add", cls=BeforeACommand)
def mcp_add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="How scripts will import it.")],
    address: Annotated[
        list[str], typer.Argument(metavar="URL|COMMAND", help="Where it is, or, behind --, how it is started.")
    ],
    *,
    config: ConfigFile = None,
    env: Annotated[
        _Texts,
        typer.Option(
            "--env",
            "-e",
            metavar="NAME[=VALUE]",
            help="A variable for the command; without a value, it is taken from the environment each time.",
        ),
    ] = None,
    headers: Annotated[
        _Texts, typer.Option("--header", "-H", metavar="TEXT", help="'Name: value', sent with every request.")
    ] = None,
    oauth: Annotated[bool, typer.Option("--oauth", help="It wants a login: `codemode mcp login` next.")] = False,
    lazy: Annotated[bool, typer.Option("--lazy", help="Connect it only while it is needed.")] = False,
    about: Annotated[
        str | None, typer.Option("--about", metavar="TEXT", help="One line by which a lazy server is found.")
    ] = None,
    replace: _Replace = False,
) -> None:
    """Add a server to the config. Nothing is started.

    \b
    Examples:
      codemode mcp add git -- mcp-server-git --repository .
      codemode mcp add mail https://mail.example/mcp --header 'Authorization: Bearer ${MAIL_TOKEN}'
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import mcp_servers as command

    request = command.AddRequest(
        name, tuple(address), tuple(env or ()), tuple(headers or ()), oauth, lazy, about, replace, config
    )
    start(command.add_server, request)


@mcp.command("import")
def mcp_import(
    servers: Annotated[_Texts, typer.Argument(metavar="SERVER", help="Only these, by their names there.")] = None,
    *,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="CLIENT|FILE",
            help="The client, as claude-code, or a file of one. Without it, the clients are shown.",
            autocompletion=complete_client,
        ),
    ] = None,
    config: ConfigFile = None,
    replace: _Replace = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing.")] = False,
) -> None:
    """Take over the servers of another MCP client.

    What the client allows without asking is not taken over. Nothing is started.

    \b
    Examples:
      codemode mcp import                        which clients have servers?
      codemode mcp import --from claude-code
      codemode mcp import --from .vscode/mcp.json --config mcp.json
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import mcp_import as command

    start(command.import_servers, command.ImportRequest(source, tuple(servers or ()), replace, dry_run, config))


@mcp.command("remove")
def mcp_remove(server: ServerName, *, config: ConfigFile = None) -> None:
    """Remove a server from the config.

    \b
    Example:
      codemode mcp remove mail
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import mcp_servers as command

    start(command.remove_server, command.RemoveRequest(server, config))


@mcp.command("login")
def mcp_login(
    server: ServerName,
    *,
    config: ConfigFile = None,
    browser: Annotated[bool, typer.Option(help="Open a browser as well as printing the address.")] = True,
) -> None:
    """Log in to a server that has `oauth` in the config.

    Its tokens are kept in the keyring or a 0600 file.

    \b
    Example:
      codemode mcp login mail --config mcp.json
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import mcp as command

    start(command.log_in, command.LoginRequest(server, config, browser))


@mcp.command("logout")
def mcp_logout(
    server: ServerName,
    *,
    config: ConfigFile = None,
) -> None:
    """Forget the tokens of a server. It does not learn of that: if it matters, end the session there too.

    \b
    Example:
      codemode mcp logout mail --config mcp.json
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import mcp as command

    start(command.log_out, command.LogoutRequest(server, config))
