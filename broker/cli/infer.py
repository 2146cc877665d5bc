"""`codemode tools infer`: result types of tools, learned from recorded results."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from broker.cli.exit_codes import ExitCode
from broker.cli.stored import open_kept
from broker.cli.terminal import Problem, note, results, write_result
from broker.recordings.showing.inference import infer
from broker.tools.inferred_results import InferredResults
from codegen.plain_text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.tools.inferred_results import Inferred

_NAME_CHARACTERS = 130


@dataclass(frozen=True)
class InferRequest:
    """The arguments of `codemode tools infer`."""

    pattern: str
    keep: bool
    forget: bool
    as_json: bool


async def infer_results(request: InferRequest) -> ExitCode:
    """Print what the recorded results say, and store it where that is asked for."""
    if request.keep and request.forget:
        raise Problem("--store and --forget say opposite things", "Give one of them.")
    with open_kept() as recordings:
        kept = InferredResults(recordings.store)
        if request.forget:
            note(f"forgot {kept.forget(request.pattern)}")
            return ExitCode.COMPLETED
        found = infer(recordings, request.pattern)
        if request.keep:
            kept.keep(found)
    if request.as_json:
        write_result(json.dumps([asdict(one) for one in found], indent=2))
    elif not found:
        raise Problem(
            f"no result of {request.pattern!r} is recorded",
            "Patterns are server.tool, as in 'git.*'; `codemode run` and `codemode serve` record results.",
        )
    else:
        for one in found:
            results().print(_text(one), soft_wrap=True)
        if request.keep:
            note(f"stored {len(found)}; tools that declare no result have these in their stubs from now on")
    return ExitCode.COMPLETED


def _text(found: Inferred) -> Text:
    text = Text.assemble(
        (one_line(found.qualified_name, _NAME_CHARACTERS), "bold"),
        f"  {counted(found.results, 'result')}, {found.digest[:19]}…",
    )
    for line in _lines(found.schema, "  "):
        text.append(f"\n{line}")
    return text


def _lines(schema: dict[str, Any], indent: str) -> Iterator[str]:
    """Yield a schema as an outline: types, and keys with a question mark where they are optional."""
    kinds = schema.get("type", "anything")
    yield f"{indent}{kinds if isinstance(kinds, str) else ' or '.join(kinds)}"
    required = schema.get("required", ())
    for key, inner in schema.get("properties", {}).items():
        first, *rest = _lines(inner, f"{indent}  ")
        yield f"{indent}  {one_line(key, _NAME_CHARACTERS)}{'' if key in required else '?'}: {first.strip()}"
        yield from rest
    if "items" in schema:
        first, *rest = _lines(schema["items"], f"{indent}  ")
        yield f"{indent}  items: {first.strip()}"
        yield from rest
