"""`codemode doctor`: one line for each thing that has to work, and what to do about what does not."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from broker.authorization.idle_parts import idle_names, idle_parts
from broker.cli.compile_progress import prepare_image
from broker.cli.configured import LISTING_SECONDS, load_config, open_broker
from broker.cli.doctor_store import store_findings
from broker.cli.exit_codes import ExitCode
from broker.cli.findings import Finding
from broker.cli.next_command import whole
from broker.cli.terminal import Problem, inert, results, write_result
from broker.shortage import instead_of_workers
from codegen.plain_text import counted, one_line
from sandbox import WorkerError
from sandbox.limits import MIB
from sandbox.workers import confinement_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from broker import Config, ServerStatus
    from broker.config.sandbox_settings import SandboxSettings
    from sandbox import Confinement
    from sandbox.image import Image

_CONFIG = "config"
_LINE_CHARACTERS = 400

_PARTS = {
    "seccomp": "seccomp",
    "landlock": "Landlock",
    "no_new_privileges": "no_new_privs",
    "resource_limits": "resource limits",
}
_ESCAPED = "a script that escapes from WebAssembly"
_MEND = "Correct it, or remove it."
_STILL_CONNECTING = "It has its connect_timeout_seconds. Run its command by hand to see whether it starts."


@dataclass(frozen=True)
class DoctorRequest:
    """The arguments of `codemode doctor`."""

    config: Path | None
    as_json: bool = False


async def examine(request: DoctorRequest) -> ExitCode:
    """Print a line as soon as each finding is made, or all of them as JSON."""
    console, made = results(), []
    async for finding in _findings(request):
        made.append(finding)
        if not request.as_json:
            console.print(_line(finding, request), soft_wrap=True)
    if request.as_json:
        write_result(json.dumps([_document(finding, request) for finding in made], indent=2))
    return ExitCode.COMPLETED if all(finding.is_right for finding in made) else ExitCode.USAGE


async def _findings(request: DoctorRequest) -> AsyncIterator[Finding]:
    config, config_finding = _read_config(request.config)
    named = config.image if config else None
    try:
        image = await prepare_image(named)
    except Problem as problem:
        yield Finding("image", is_right=False, found=problem.what, what_to_do=problem.what_to_do)
    else:
        yield Finding("image", is_right=True, found=f"{f'{named}, ' if named else ''}sha256 {image.digest[:12]}")
        yield _cache_finding(image)
        yield await _workers_finding(image)
        if config is not None:
            yield _sandbox_finding(config.sandbox)
    for finding in store_findings():
        yield finding
    yield config_finding
    if config is None:
        return
    for idle in idle_parts(config.policy, config.servers):
        yield Finding("policy", is_right=False, found=idle, what_to_do=_MEND)
    if config.serve.oauth is not None:
        from broker.cli.doctor_oauth import oauth_findings  # noqa: PLC0415  # loads cryptography

        async for finding in oauth_findings(config.serve.oauth):
            yield finding
    async for finding in _server_findings(config):
        yield finding


def _read_config(given: Path | None) -> tuple[Config | None, Finding]:
    try:
        config = load_config(given)
    except Problem as problem:
        return None, Finding(_CONFIG, is_right=False, found=problem.what, what_to_do=problem.what_to_do)
    return config, Finding(_CONFIG, is_right=True, found=counted(len(config.servers), "server"))


def _cache_finding(image: Image) -> Finding:
    """Where the compiled image is kept, so that the next command need not compile it."""
    if image.unkept:
        return Finding("cache", is_right=False, found=f"each command compiles the image anew: {image.unkept}")
    size = image.compiled.stat().st_size // MIB
    return Finding("cache", is_right=True, found=f"{image.compiled.parent} ({size} MiB compiled)")


async def _workers_finding(image: Image) -> Finding:
    """Return what confines the processes that scripts run in: a platform that lacks a part is named, and not wrong."""
    try:
        confinement = await confinement_here(image.file)
    except WorkerError as error:
        return Finding("workers", is_right=False, found=str(error), what_to_do=instead_of_workers())
    return Finding("workers", is_right=True, found=what_confines(confinement))


def what_confines(confinement: Confinement) -> str:
    """Say what holds a worker process, and what this system lacks."""
    held = [name for part, name in _PARTS.items() if part not in confinement.missing]
    missing = [_PARTS[part] for part in confinement.missing]
    confined = f"confined by {', '.join(held)}" if held else "without secrets, and not confined"
    if not missing:
        return confined
    rest = "only the rest holds" if held else "nothing holds"
    return f"{confined}; this system has no {', no '.join(missing)}: {rest} {_ESCAPED}"


def _sandbox_finding(settings: SandboxSettings) -> Finding:
    """Where scripts run and within what bounds, by the config."""
    own = f"the broker's own process: nothing there holds {_ESCAPED}"
    place = "worker processes" if settings.isolation == "process" else own
    limits = settings.limits
    bounds = (
        f"{limits.wall_seconds:g} s by the clock, {limits.cpu_seconds:g} s of processor time, "
        f"{limits.memory_bytes // MIB} MiB of memory, {limits.calls} calls"
    )
    return Finding(
        "scripts", is_right=True, found=f"in {place}; {settings.pool} instances kept ready; at most {bounds}"
    )


async def _server_findings(config: Config) -> AsyncIterator[Finding]:
    """Return the state of each server, lazy ones too, or what of the config is found out when it is used."""
    try:
        async with open_broker(config, waits=False) as broker:
            await broker.need_servers(timeout_seconds=LISTING_SECONDS)
            statuses = broker.server_statuses()
            for status in statuses:
                yield _server_finding(status)
            catalog = broker.catalog
            ready = (status.name for status in statuses if status.state == "ready")
            listings = {name: [entry.spec for entry in catalog.of_server(name)] for name in ready}
            for idle in idle_names(config.policy, listings):
                yield Finding("policy", is_right=False, found=idle, what_to_do=_MEND)
    except Problem as problem:
        yield Finding(_CONFIG, is_right=False, found=problem.what, what_to_do=problem.what_to_do)


def _server_finding(status: ServerStatus) -> Finding:
    subject = f"server {status.name}"
    if status.state == "ready":
        offers = f"{counted(status.tool_count, 'tool')}, protocol {status.protocol_version}"
        found = "; ".join([offers, *status.warnings])
        return Finding(subject, is_right=True, found=found)
    if status.state == "disabled":
        return Finding(subject, is_right=True, found="disabled in the config")
    found = status.problem or f"still connecting after {LISTING_SECONDS:g} seconds"
    return Finding(subject, is_right=False, found=found, what_to_do=status.what_to_do or _STILL_CONNECTING)


def _document(finding: Finding, request: DoctorRequest) -> dict[str, Any]:
    said = {"found": whole(finding.found, request), "what_to_do": whole(finding.what_to_do, request)}
    return asdict(finding) | said


def _line(finding: Finding, request: DoctorRequest) -> Text:
    mark = Text("ok   ", style="green") if finding.is_right else Text("wrong", style="bold red")
    # The config's problems have a line each, and are the operator's own to mend: none is cut.
    shown = inert(finding.found) if finding.subject == _CONFIG else one_line(finding.found, _LINE_CHARACTERS)
    found = whole(shown, request)
    before = "\n  -> " if "\n" in found else " -> "
    remedy = f"{before}{whole(one_line(finding.what_to_do, _LINE_CHARACTERS), request)}" if finding.what_to_do else ""
    return Text.assemble(mark, "  ", (finding.subject, "bold"), f": {found}{remedy}")
