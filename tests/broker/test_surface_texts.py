"""Every text that a model can be given by the surface, word for word, each under 800 characters.

After a wanted change: `python -m pytest tests/broker/test_surface_texts.py` shows the new text, which goes into
`surface_texts.txt`.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from broker import Denial, PolicyConfig
from broker.authorization.calls import PendingCall
from broker.authorization.decision import Ask, Deny, authorize
from broker.authorization.flow import FlowState
from broker.authorization.grants import GrantBook
from broker.authorization.policy import Policy
from broker.authorization.policy_config import Rule
from broker.authorization.waiting import nobody_answers
from broker.calls import call_texts
from broker.calls.attempts import CallRecord, Status
from broker.disclosure import tool_descriptions
from broker.disclosure.tool_details import ToolDetails
from broker.runs import hint_texts
from broker.runs.envelope import StoppedBy
from broker.surface import run_texts, texts
from broker.surface.texts import MESSAGE_CHARACTERS
from codegen.plain_text import one_line
from codegen.undefined_names import nowhere_hint

MODULES = (texts, run_texts, call_texts, hint_texts)
SNAPSHOT = Path(__file__).with_name("surface_texts.txt")
LONG = "x" * 5_000
HOSTILE = f"\x1b[31m\n\n{LONG}\u202e"


def calls(count: int, name: str = "git") -> list[CallRecord]:
    return [CallRecord(server=f"{number}{name}", tool="log", status="ok") for number in range(count)]


def record(status: Status, name: str) -> CallRecord:
    return CallRecord(server="git", tool=name, status=status)


def details(name: str, near: tuple[str, ...], count: int = 1) -> ToolDetails:
    return ToolDetails(
        source="",
        described=(),
        unknown={f"{name}{number}": near for number in range(count)},
        ambiguous={f"{name}bare": near},
        unavailable={f"{name}down.x": f"down is not available: {name}"},
        changed={f"{name}.changed": name},
        withdrawn=(f"{name}0",),
    )


def several(name: str) -> ToolDetails:
    """Return that many names of a fetch were not described, for few reasons."""
    return ToolDetails(
        source="",
        described=(),
        unknown={f"git.{name}_{number}": (f"git.git_{number}", "git.git_log") for number in range(5)}
        | {f"mail.{name}": (), "mail.send": ()},
        unavailable={f"down.{name}{number}": "down is not available: it ended at once" for number in range(40)},
    )


CASES = {
    "instructions": lambda name: texts.instructions([name, "memory"]),
    "calls_line": lambda name: run_texts.calls_line([*calls(3), *calls(1), *calls(1, name)]),
    "already_made": lambda name: run_texts.already_made([*calls(20, name)] if name == HOSTILE else calls(2)),
    "stopped": lambda name: run_texts.stopped(StoppedBy(limit="wall_seconds", amount=30)),  # noqa: ARG005  # none in it
    "stopped_at_a_line": lambda name: run_texts.stopped(StoppedBy(limit="calls", amount=1_000, line=3)),  # noqa: ARG005
    "stopped_in_a_loop": lambda name: run_texts.stopped(StoppedBy(limit="calls", amount=1_000, line=3), 1_000),  # noqa: ARG005
    "already_made_nothing_sent": lambda name: run_texts.already_made(
        [record("refused", name), record("not_found", name)]
    ),
    "shorter_timeout": lambda name: run_texts.shorter_timeout(600),  # noqa: ARG005  # none in it
    "displayed": lambda name: run_texts.displayed(2),  # noqa: ARG005
    "left_out": lambda name: run_texts.left_out(1_000, f"resource:///runs/{name[:20]}/output?offset=16000"),
    "page_end": lambda name: run_texts.page_end("resource:///runs/run_1/output?offset=24000"),  # noqa: ARG005
    "not_displayed": lambda name: run_texts.not_displayed(3),  # noqa: ARG005
    "new_session": lambda name: texts.new_session("s_0123456789abcdef"),  # noqa: ARG005
    "unknown_session": texts.unknown_session,
    "no_handle": texts.no_handle,
    "wrong_arguments": lambda name: texts.wrong_arguments(
        "execute_code", f"code: {name[:300]} is not of type 'string'"
    ),
    "wrong_names": lambda name: texts.wrong_arguments(
        "execute_code", f"{name[:300]!r} was unexpected", ["code", "timeout", "session"]
    ),
    "unknown_tool": lambda name: texts.unknown_tool(f"{name}.tool", list(texts.DESCRIPTIONS)),
    "unknown_tool of no server": lambda name: texts.unknown_tool(name, list(texts.DESCRIPTIONS)),
    "imports": lambda name: texts.imports(["git", "memory"]),  # noqa: ARG005
    "not_described": lambda name: texts.not_described(details(name, ("git.git_log",), 30 if name == HOSTILE else 1)),
    "not_described_several": lambda name: texts.not_described(several(name)),
    "outlook": lambda name: texts.outlook([f"{name}.{number}" for number in range(40)], [name, "git.git_push"]),
    "too_many_tools": lambda name: texts.too_many_tools(9_900, 100),  # noqa: ARG005
    "nothing_found": texts.nothing_found,
    "too_long": lambda name: texts.too_long([name, "git.git_log"]),
    "next_categories": lambda name: texts.next_categories("abc"),  # noqa: ARG005
    "next_page": lambda name: texts.next_page("abc"),  # noqa: ARG005
    "no_resource": texts.no_resource,
    "interrupted": lambda name: run_texts.interrupted("run_0123456789abcdef", f"2 calls had been answered. {name}"),
    "not_resumed": run_texts.not_resumed,
}


def pending(name: str) -> PendingCall:
    return PendingCall("git", one_line(name, 128), "sha256:0", {})


def refused(name: str, policy: PolicyConfig, *, denial: Denial | None = None) -> str:
    """Return what a script is told by a decision."""
    book = GrantBook.of(denials=[denial] if denial is not None else [])
    decision = authorize(pending(name), policy=Policy(policy), grants=book, flow=FlowState(), now=0)
    if isinstance(decision, Ask):
        return nobody_answers(pending(name), decision)
    assert isinstance(decision, Deny)
    return decision.reason


# What scripts are told of calls, and models of scripts that were not started.
CALLS = {
    "script_not_described": lambda name: call_texts.script_not_described(
        [f"git.{one_line(name, 128)} (line 3)"] * (40 if name == HOSTILE else 1), [name]
    ),
    "fetch_them": lambda name: call_texts.fetch_them([f"git.{one_line(name, 128)}"] * (40 if name == HOSTILE else 1)),
    "call_not_described": lambda name: call_texts.call_not_described("git.log", "git.log", name),
    "bad_arguments": lambda name: call_texts.bad_arguments(
        "git.log", [call_texts.fault(f"max_count: {name} is not of type 'integer'", ""), "and 2 more"]
    ),
    "fault": lambda name: call_texts.fault(f"max_count: {name} is not of type 'integer'", call_texts.CONVERT_TO_INT),
    "no_parameter": lambda name: call_texts.no_parameter([name] * 4, [name] * 14),
    "leave_out": lambda name: call_texts.leave_out(name[:64]),
    "taken_back": lambda name: call_texts.taken_back("git.log"),  # noqa: ARG005
    "input_refused": lambda name: call_texts.input_refused("git", name),
    "unavailable": lambda name: call_texts.unavailable("git", f"it ended at once: {name}"),
    "refused_by_http": lambda name: call_texts.refused_by_http("git", 403),  # noqa: ARG005
    "refused_by_http and without a token": lambda name: call_texts.refused_by_http("git", 401, 60),  # noqa: ARG005
    "not_taken": lambda name: call_texts.not_taken("git", 60),  # noqa: ARG005
    "not_found": lambda name: call_texts.not_found(f"git.{name}", ["git.git_log", "git.git_show"]),
    "not_found and many near": lambda name: call_texts.not_found(f"git.{name}", [f"git.{one_line(name, 250)}"] * 3),
    "not_found any more": lambda name: call_texts.not_found(f"git.{name}", [], is_withdrawn=True),
    "not_written_down": lambda name: call_texts.not_written_down("git.log"),  # noqa: ARG005  # none in it
    "no_answer": lambda name: call_texts.no_answer("git", 60),  # noqa: ARG005
    "reported_timeout": lambda name: call_texts.reported_timeout("git"),  # noqa: ARG005
    "lost_answer": lambda name: call_texts.lost_answer("git", f"it ended: {name}"),
    "lost_answer_too_large": lambda name: call_texts.lost_answer("git", "it said too much", is_too_large=True),  # noqa: ARG005
    "bad_answer": lambda name: call_texts.bad_answer("git"),  # noqa: ARG005
    "not_passed_on": lambda name: call_texts.not_passed_on("git.log"),  # noqa: ARG005
    "unfit_result": lambda name: call_texts.unfit_result(name, f"does not fit the tool's outputSchema: {name[:420]}"),
    "unfit_result too large": lambda name: call_texts.unfit_result(name, "has too much", is_too_large=True),
    "changed_at_server": lambda name: call_texts.changed_at_server("git", name[:128]),
    "until_back": lambda name: call_texts.until_back(name[:64]),
    "search_request": call_texts.search_request,
    "import_it": hint_texts.import_it,
    "import_beside": lambda name: hint_texts.import_beside(name[:64]),
    "import_server": lambda name: hint_texts.import_server("git", name[:64]),
    "import_as": lambda name: hint_texts.import_as(name, "side_desk"),
    "nowhere_hint": lambda name: nowhere_hint("jira", "await jira.search()", [name] * 20),
    "nowhere_hint of no server": lambda name: nowhere_hint("rows", "rows()", [name]),
    "of_a_server": lambda name: call_texts.of_a_server(name[:64]),
    "no_function": call_texts.no_function,
    "extract_reads": lambda name: call_texts.extract_reads(400_000),  # noqa: ARG005
    "extract_got": lambda name: call_texts.extract_got(f"age: {name} is not of type 'integer'"),
    "refused_by_nobody": lambda name: refused(name, PolicyConfig(rules=())),
    "refused_by_a_rule": lambda name: refused(
        name, PolicyConfig(rules=(Rule(name="no pushes", tools=("*",), effect="deny", reason="releases go by CI"),))
    ),
    "refused_by_a_person": lambda name: refused(name, PolicyConfig(), denial=Denial("git.*", note="not today")),
}
CASES |= CALLS


CONSTANTS = {
    name: text
    for module in MODULES
    for name, text in vars(module).items()
    if name.isupper() and name[0] != "_" and isinstance(text, str)
} | texts.DESCRIPTIONS
CONSTANTS |= {name: getattr(tool_descriptions, name) for name in ("WORKFLOW", "SCRIPTS_WORKFLOW", "SYSTEM_PROMPT")}


def shown() -> str:
    parts = [f"## {name}\n{make('name')}" for name, make in CASES.items()]
    parts += [f"## {name}\n{text}" for name, text in CONSTANTS.items()]
    return "\n\n".join(parts) + "\n"


def test_the_texts_are_word_for_word_as_approved():
    assert shown() == SNAPSHOT.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["name", LONG, HOSTILE])
def test_no_text_is_long_or_live_whatever_is_named_in_it(case, name):
    text = CASES[case](name)
    assert len(text) < MESSAGE_CHARACTERS
    if case not in {"left_out", "wrong_arguments", "instructions"}:
        assert "\x1b" not in text


@pytest.mark.parametrize("name", CONSTANTS)
def test_no_text_without_names_is_long(name):
    assert len(CONSTANTS[name]) < MESSAGE_CHARACTERS


def test_every_text_is_a_case_here():
    for module in MODULES:
        made = {
            name
            for name, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__
        }
        assert {name for name in made if not name.startswith("_")} - {"fetch_request"} <= CASES.keys()
