"""Groups of commands, with hints for a command or an option that is typed in the wrong place or by another name.

Above: app.py and the `*_commands.py`. Below: typer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import Default

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_OTHER_WORDS = {
    "compare": "replay",
    "describe": "tools show",
    "exec": "run",
    "help": "--help",
    "html": "show RUN --html FILE",
    "init": "mcp import",
    "ls": "tools list",
    "status": "doctor",
    "version": "--version",
}
"""What people look for who know other programs."""

_IN_GROUPS = {
    "mcp get": "tools servers",
    "mcp list": "tools servers",
    "mcp ls": "tools servers",
}
"""The same within a group."""

_PARTS_OF_AN_ADDRESS = frozenset({"--address", "--bind", "--host", "--port", "-p"})

_SAME = (frozenset({"list", "ls"}), frozenset({"delete", "remove", "revoke", "rm"}))
"""Names for one thing, of which a group has at most one."""


class Commands(TyperGroup):
    """A group that says where to find a command that it does not have: `recordings show` is `codemode show`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what is typed behind the group, as typer does; say where an option goes that is typed too early."""
        option = args[0].partition("=")[0] if args else ""
        own = {one for parameter in self.get_params(ctx) for one in (*parameter.opts, *parameter.secondary_opts)}
        behind = next((one for one in args if one in self.commands), "")
        if option.startswith("-") and option not in own and behind and not ctx.resilient_parsing:
            where = f"{ctx.command_path} {behind} ... {option}"
            ctx.fail(f"No such option: {option}. It goes behind the command: '{where}'")
        try:
            return super().parse_args(ctx, args)
        except OSError as error:  # of --install-completion, which writes while it is parsed
            problem = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            ctx.fail(f"Completion cannot be installed: {problem}. 'codemode --show-completion' prints it.")
            raise  # not reached: `fail` raises

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is named first, as typer does."""
        name = args[0]
        if not (name.startswith("-") or name in self.commands or ctx.resilient_parsing):
            root = ctx.find_root()
            where = ctx.command_path.partition(" ")[2]
            found = _meant(root.command, f"{where} " if where else "", self.commands, name)
            if found:
                said = " or ".join(f"'{root.info_name} {path}'" for path in found)
                ctx.fail(f"No such command {name!r}. Did you mean {said}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named, as typer does; an argument is refused in typer's words, not in pydantic's."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


class BeforeACommand(TyperCommand):
    """A command behind whose arguments the command line of another program may stand."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what is typed, as typer does; say how options are left to the other program."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if "--" not in args and str(error).startswith("No such option"):
                ctx.fail(
                    f"{str(error).rstrip('.')}. If it is an option of the server, write -- before the server's command."
                )
            raise


class AtAnAddress(TyperCommand):
    """A command that takes host and port together, where other programs have an option for each."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what is typed, as typer does; say how to write the address."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", "")
            if option in _PARTS_OF_AN_ADDRESS:
                ctx.fail(f"No such option: {option}. Write host and port together, as in '--http 127.0.0.1:8000'.")
            raise


def group(summary: str = "", *, no_args_is_help: bool = True) -> typer.Typer:
    """Return a group without commands yet; one without a summary has that of its callback."""
    said = summary or Default(None)
    return typer.Typer(cls=Commands, no_args_is_help=no_args_is_help, rich_markup_mode=None, help=said)


def _meant(root: Any, before: str, own: Iterable[str], name: str) -> list[str]:
    """Return the commands that somebody may mean who types `name` in the group behind `before`: the nearest first."""
    if (in_group := f"{before}{name}") in _IN_GROUPS:
        return [_IN_GROUPS[in_group]]
    if same := [f"{before}{one}" for one in own if any({one, name} <= words for words in _SAME)]:
        return same
    if elsewhere := [path for path in _paths(root, "") if path.rpartition(" ")[2] == name]:
        return elsewhere
    return [_OTHER_WORDS[name]] if name in _OTHER_WORDS else []


def _paths(group: Any, before: str) -> Iterator[str]:
    """Yield all commands with the groups they are in."""
    for name, command in group.commands.items():
        yield f"{before}{name}"
        if isinstance(command, TyperGroup):
            yield from _paths(command, f"{before}{name} ")
