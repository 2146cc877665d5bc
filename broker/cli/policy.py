"""`codemode policy`: its schema, what it says of one call, and why the calls of a run were decided as they were."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.audit.chain import entries
from broker.authorization.calls import Caller, PendingCall, ToolFacts
from broker.authorization.decision import Allow, Ask, Decision, Deny, authorize, basis_name
from broker.authorization.flow import FlowState
from broker.authorization.grants import GrantBook
from broker.authorization.idle_parts import labels_carried, meant
from broker.authorization.model_calls import SERVER, TOOL, model_call
from broker.authorization.policy import Policy
from broker.authorization.policy_config import COPIED, policy_json_schema
from broker.authorization.shown import shown_name, shown_text
from broker.calls.argument_faults import faults_of
from broker.cli.audit import attempts_with_results, why
from broker.cli.configured import load_config, open_broker, server_of
from broker.cli.exit_codes import ExitCode
from broker.cli.given_grants import grants_of, report_idle
from broker.cli.stored import open_store, whole_id
from broker.cli.terminal import Problem, note, write_result, write_table

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from broker import Config

_ARGUMENT_CHARACTERS = 160
_WORDS = {Allow: "allow", Ask: "ask", Deny: "deny"}


@dataclass(frozen=True)
class TestRequest:
    """The arguments of `policy test`."""

    config: Path | None
    call: str
    args: str
    allow: tuple[str, ...]
    after: tuple[str, ...]
    principal: str
    session: str
    as_json: bool


@dataclass(frozen=True)
class ExplainRequest:
    """The arguments of `policy explain`."""

    run: str
    as_json: bool


async def print_schema(_request: None) -> ExitCode:
    """Print the JSON Schema of the `policy` section."""
    write_result(json.dumps(policy_json_schema(), indent=2))
    return ExitCode.COMPLETED


async def test_policy(request: TestRequest) -> ExitCode:
    """Print what would be decided about one call, which is not made."""
    config = load_config(request.config)
    arguments = _arguments(request.args)
    server, dot, tool = request.call.partition(".")
    if not dot or not server or not tool:
        raise Problem(f"--call: {request.call!r} names no tool", "Write server.tool.")
    grants = grants_of(request.allow)
    report_idle(grants, config)
    _check_labels(request.after, config)
    book = GrantBook.of(grants)
    call = await _pending(config, server, tool, arguments, Caller(request.session, request.principal))
    flow = FlowState()
    for label in request.after:
        flow.receive(PendingCall("earlier", "call", "", {}, ToolFacts(labels=frozenset({label}))), None)
    decision = authorize(call, policy=Policy(config.policy), grants=book, flow=flow, now=time.time())
    if request.as_json:
        write_result(json.dumps(_document(decision)))
    else:
        write_result(_sentence(decision))
    return ExitCode.COMPLETED if isinstance(decision, Allow) else ExitCode.REFUSED


async def explain_run(request: ExplainRequest) -> ExitCode:
    """Print for each call of a run what decided it."""
    with open_store() as store:
        found = list(attempts_with_results(entries(store, run=whole_id(store, request.run))))
    if not found:
        raise Problem(f"no call of {request.run!r} is on record", "`codemode audit` lists the runs.")
    if request.as_json:
        for record in found:
            write_result(json.dumps(record))
        return ExitCode.COMPLETED
    rows = [
        (
            shown_name(f"{record['server']}.{record['tool']}"),
            shown_text(record["arguments"], _ARGUMENT_CHARACTERS),
            record["decision"],
            why(record) or f"nothing was decided: {shown_name(record['status'])}",
        )
        for record in found
    ]
    write_table(("tool", "arguments", "decision", "because of"), rows)
    return ExitCode.COMPLETED


async def _pending(config: Config, server: str, tool: str, arguments: dict[str, Any], caller: Caller) -> PendingCall:
    """Return the call with what its server says of the tool; the other servers are not started."""
    policy = Policy(config.policy)
    if (server, tool) == (SERVER, TOOL):
        return model_call(arguments, policy, caller)
    settings = server_of(config, server, "--call: ")
    only = config.model_copy(update={"servers": {server: settings.model_copy(update={"lazy": False})}})
    async with open_broker(only) as broker:
        entry = broker.catalog.find(f"{server}.{tool}")
        problem = broker.server_statuses()[0].problem
        names = [one.spec.name for one in broker.catalog.tools]
    if entry is None:
        has_none = "is disabled in the config" if settings.disabled else "has no such tool"
        reason = f"{server} is not available: {problem}" if problem else f"{server} {has_none}"
        without = f"decided without what the server says of the tool{meant(tool, names)}"
        note(f"note: {shown_text(reason, 300)}; {without}")
        return PendingCall(server, tool, "", arguments, ToolFacts(labels=policy.labels_of(settings.labels)), caller)
    if arguments and (faults := faults_of(arguments, entry)):
        fault = f"{entry.qualified_name} does not take these arguments: {'; '.join(faults)}"
        note(f"note: {shown_text(fault, 300)}; a call like that fails, whatever is decided here")
    return PendingCall(server, tool, entry.spec.digest, arguments, policy.facts_of(entry.spec, settings), caller)


def _check_labels(labels: Iterable[str], config: Config) -> None:
    """Refuse labels that no server has, and no flow names.

    Raises:
        Problem: It names the first, and those that there are.
    """
    policy = Policy(config.policy)
    in_flows = {label for flow in policy.flows for label in (flow.source, flow.to)}
    known = sorted((labels_carried(policy, config.servers) | in_flows) - {COPIED})
    for label in labels:
        if label not in known:
            said = f"--after: no server and no flow has the label {label!r}{meant(label, known)}"
            raise Problem(said, f"There are {', '.join(known)}." if known else "There are none.")


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise Problem("--args: not a JSON object", """Write --args '{"path": "notes/a.md"}'.""")
    return arguments


def _sentence(decision: Decision) -> str:
    basis = decision.basis
    because = f": {basis.reason}" if basis.reason else ""
    return f"{_WORDS[type(decision)]} ({basis_name(basis.kind, basis.name)}{because})"


def _document(decision: Decision) -> dict[str, Any]:
    basis = decision.basis
    return {"decision": _WORDS[type(decision)], "kind": basis.kind, "name": basis.name, "reason": basis.reason}
