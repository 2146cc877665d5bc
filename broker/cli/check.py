"""`codemode check`: the mistakes of a script, without running it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from broker.cli.configured import load_config, open_broker, report_no_config, report_servers
from broker.cli.exit_codes import ExitCode
from broker.cli.script_file import STDIN, read_script
from broker.cli.terminal import Problem, note, results, write_result
from codegen import CheckerError
from codegen.checking.script_text import lines_of

if TYPE_CHECKING:
    from pathlib import Path

    from broker import CheckedScript
    from codegen import Diagnostic

_LINE_CHARACTERS = 160


@dataclass(frozen=True)
class CheckRequest:
    """The arguments of `codemode check`."""

    script: str
    config: Path | None
    as_json: bool


async def check_script(request: CheckRequest) -> ExitCode:
    """Print what is wrong with the script."""
    script = read_script(request.script)
    config = load_config(request.config, needed=False)
    async with open_broker(config, runs_scripts=True) as broker:
        try:
            checked = await broker.session().check_code(script, describe_references=True)
        except CheckerError as error:
            raise Problem(f"the script was not checked: {error}") from None
        report_servers(broker, request)
    if request.as_json:
        write_result(json.dumps(asdict(checked), indent=2, ensure_ascii=False))
    else:
        _report(checked, "<stdin>" if request.script == STDIN else request.script, script)
    if checked.diagnostics:
        report_no_config(request.config)
    return _exit_code(checked)


def _exit_code(checked: CheckedScript) -> ExitCode:
    if checked.diagnostics:
        return ExitCode.MISTAKES
    if checked.unchecked:
        raise Problem(
            f"not all was checked: {', '.join(checked.unchecked)} cannot be used", "`codemode doctor` says what to do."
        )
    return ExitCode.COMPLETED


def _report(checked: CheckedScript, name: str, script: str) -> None:
    lines = lines_of(script)
    for diagnostic in checked.diagnostics:
        source = lines[diagnostic.line - 1] if diagnostic.line <= len(lines) else ""
        results().print(_shown(diagnostic, name, source), soft_wrap=True)
    if not checked.diagnostics and not checked.unchecked:
        note(f"{name}: no mistakes found")


def _shown(diagnostic: Diagnostic, name: str, source: str) -> Text:
    """Return a mistake under its place, the line of the script below it, and a caret where it begins."""
    column = diagnostic.column - 1
    first = max(0, column - _LINE_CHARACTERS // 2)
    # Each character stays one, so that the caret stands right; control characters would drive the terminal.
    piece = "".join(one if one.isprintable() else " " for one in source[first : first + _LINE_CHARACTERS])
    margin = len(piece) - len(piece.lstrip()) if first == 0 else 0
    margin = min(margin, column)
    return Text.assemble(
        (f"{name}:{diagnostic.line}:{diagnostic.column}: ", "bold"),
        (diagnostic.message, "red"),
        f" ({diagnostic.hint})" if diagnostic.hint else "",
        f"\n    {piece[margin:]}\n    ",
        " " * cell_len(piece[margin : column - first]),
        ("^", "bold red"),
    )
