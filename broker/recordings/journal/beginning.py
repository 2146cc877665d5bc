"""The first line of a recording: everything that a run depends on, except the answers to its calls.

Above: recorder.py, which collects it, and run_journal.py, which writes it. Below: writing.py.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from broker.recordings.events import FORMAT, VERSION
from broker.recordings.journal.recorded_grants import recorded_denial, recorded_grant
from broker.recordings.parts import RecordedTool
from broker.recordings.writing import members

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.authorization.grants import Denial, Held
    from broker.recordings.writing import Line
    from broker.tools.catalog import CatalogEntry
    from sandbox import Limits


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """What a run begins with; fields as in `events.Begun`."""

    run_id: str
    filename: str
    script: str
    manifest: Mapping[str, Any]
    seed: int
    wall_ns: int
    limits: Limits
    image: str
    tools: Sequence[RecordedTool]
    policy: Any
    versions: Mapping[str, str]
    grants: Sequence[Held] = ()
    denials: Sequence[Denial] = ()
    principal: str = ""
    session: str = ""
    request: str = ""


def begun(beginning: Beginning, mode: str, line: Line) -> str:
    """Return the first line, without the braces around it."""
    script, manifest = line.stored(beginning.script), line.stored(beginning.manifest)
    body = {
        "format": FORMAT,
        "version": VERSION,
        "run_id": beginning.run_id,
        "mode": mode,
        "filename": beginning.filename,
        "seed": beginning.seed,
        "wall_ns": beginning.wall_ns,
        "limits": asdict(beginning.limits),
        "image": beginning.image,
        "tools": [tool.model_dump() for tool in beginning.tools],
        "principal": beginning.principal,
        "session": beginning.session,
        "versions": dict(beginning.versions),
        "redactions": line.redaction.count,
    }
    grants = line.parts(map(recorded_grant, beginning.grants))
    denials = line.parts(map(recorded_denial, beginning.denials))
    stored = f'"script":{script},"manifest":{manifest},"policy":{line.stored(beginning.policy)}'
    return f'{members(body)},{stored},"grants":{grants},"denials":{denials}'


def recorded_tool(entry: CatalogEntry, *, is_trusted: bool, labels: Iterable[str]) -> RecordedTool:
    """Return a tool as it is written down, with what the operator says of its server."""
    spec = entry.spec
    return RecordedTool(
        server=spec.server,
        tool=spec.name,
        function=entry.python_name,
        digest=spec.digest,
        **asdict(spec.annotations),
        is_trusted=is_trusted,
        labels=tuple(sorted(labels)),
    )


@cache
def present_versions() -> Mapping[str, str]:
    """Return the versions of what runs scripts here."""
    return {"codemode-broker": version("codemode-broker"), "wasmtime": version("wasmtime")}
