"""The commands about authorization as the command line accepts them: `policy`, `grants`, `audit`.

Above: app.py, which adds them. Below: the module of each command, imported when it is called.
"""

# Typer reads the annotations while the program runs.
# ruff: noqa: PLC0415, TC001

from __future__ import annotations

from typing import Annotated

import typer

from broker.cli.command_names import group
from broker.cli.completed_names import complete_grant, complete_run, complete_server
from broker.cli.options import AsJson, AsJsonLines, ConfigFile
from broker.cli.start import start

policy = group("Say what may be called, and why.")
grants = group("Look at permanent grants, and revoke them.")
audit = group(no_args_is_help=False)

_Texts = list[str] | None


@policy.command("schema")
def policy_schema() -> None:
    """Print the JSON Schema of the `policy` section of a config.

    \b
    Example:
      codemode policy schema > policy.schema.json
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import policy as command

    start(command.print_schema, None)


@policy.command("test")
def policy_test(
    *,
    call: Annotated[str, typer.Option("--call", metavar="SERVER.TOOL", help="The tool that would be called.")],
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="Its arguments.")] = "{}",
    config: ConfigFile = None,
    allow: Annotated[
        _Texts, typer.Option("--allow", "-a", metavar="PATTERN", help="Grants, as for `codemode run`.")
    ] = None,
    after: Annotated[
        _Texts, typer.Option("--after", metavar="LABEL", help="Decide as if the run had received this label.")
    ] = None,
    principal: Annotated[str, typer.Option("--principal", metavar="NAME", help="Decide for this principal.")] = "",
    session: Annotated[str, typer.Option("--session", metavar="NAME", help="Decide for a session of this name.")] = "",
    as_json: AsJson = False,
) -> None:
    """Say what would be decided about a call, and why.

    Names the rule or the grant that decides. Nothing is called.

    \b
    Example:
      codemode policy test --config mcp.json --call git.git_status --args '{"repo_path": "."}'

    \b
    Exit codes: 0 allowed, 4 asked or denied, 2 wrong usage or config.
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import policy as command

    request = command.TestRequest(
        config, call, args, tuple(allow or ()), tuple(after or ()), principal, session, as_json
    )
    start(command.test_policy, request)


@policy.command("explain")
def policy_explain(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="Its id, or the beginning of it, or `last`.", autocompletion=complete_run),
    ],
    *,
    as_json: AsJsonLines = False,
) -> None:
    """Say for each call of a run what decided it.

    \b
    Example:
      codemode policy explain last
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import policy as command

    start(command.explain_run, command.ExplainRequest(run, as_json))


@grants.command("list")
def list_grants(*, as_json: AsJson = False) -> None:
    """List the permanent grants.

    \b
    Example:
      codemode grants list
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import grants as command

    start(command.list_grants, command.ListRequest(as_json))


@grants.command("revoke")
def revoke_grants(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="As `grants list` shows them.", autocompletion=complete_grant),
    ],
) -> None:
    """Revoke permanent grants.

    From the next call on, running scripts are refused too.

    \b
    Example:
      codemode grants revoke k_0123abcd
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import grants as command

    start(command.revoke_grants, command.RevokeRequest(tuple(ids)))


@audit.callback(invoke_without_command=True)
def show_audit(
    context: typer.Context,
    *,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="Only this run: its id, or the beginning of it, or `last`.",
            autocompletion=complete_run,
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="NAME", help="Only calls to this server.", autocompletion=complete_server),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only from then on: an age (30m, 2h, 7d) or a date.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that no record was changed and none is missing.")
    ] = False,
    as_json: AsJsonLines = False,
) -> None:
    """Show attempted calls, what decided them and how they ended.

    \b
    Examples:
      codemode audit --since 2h
      codemode audit --json > audit.jsonl
      codemode audit --verify
      codemode audit prune --older-than 90d

    \b
    Exit codes: 0, 1 --verify found a fault, 2 wrong usage,
    or nothing was recorded yet.
    """  # noqa: D301  # \b keeps click from refilling the lines
    if context.invoked_subcommand is not None:
        return
    from broker.cli import audit as command

    request = command.AuditRequest(run, server, since, verify, as_json)
    start(command.show_audit, request)


@audit.command("prune")
def prune_audit(
    *,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="TIME", help="Remove those older than an age (90d) or a date.")
    ] = None,
    keep: Annotated[int | None, typer.Option("--keep", metavar="N", min=1, help="Remove all but the newest N.")] = None,
) -> None:
    """Remove the oldest records. The rest can still be verified, and says what was removed.

    Export them first if you may need them. The file keeps its size; new records use the freed space.

    \b
    Examples:
      codemode audit --json > audit.jsonl
      codemode audit prune --older-than 90d
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import audit as command

    start(command.prune_audit, command.PruneRequest(older_than, keep))
