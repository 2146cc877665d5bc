"""Every text that can reach a model, word for word, each under 800 characters.

`surface_texts.txt` holds the texts of `CASES` and the constants of `MODULES`, and below them every sentence that stands
`OUTSIDE` of these. After a wanted change: `python -m pytest tests/broker/test_surface_texts.py` shows the new text,
which goes into it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker import Denial, PolicyConfig, texts
from broker.authorization.calls import PendingCall
from broker.authorization.decision import Ask, Basis, Deny, FlowUse, _refused, authorize
from broker.authorization.flow import FlowState
from broker.authorization.grants import GrantBook
from broker.authorization.policy import Policy
from broker.authorization.policy_config import Rule
from broker.authorization.waiting import nobody_answers
from broker.calls.attempts import CallRecord, Status
from broker.calls.call_failures import failed_at_server, quoted
from broker.calls.host_paths import HostPaths
from broker.disclosure import tool_descriptions
from broker.disclosure.tool_details import ToolDetails
from broker.errors import RunInterruptedError, SearchError, ToolRejectedError
from broker.runs.envelope import StoppedBy
from broker.runs.not_described import NotDescribed
from broker.runs.script_check import not_started, unreadable
from broker.search.pages import Detail, SearchRequest
from broker.search.patterns import matching
from broker.surface import dispatch
from broker.texts import (
    call_texts,
    check_texts,
    description_texts,
    hint_texts,
    refusal_texts,
    result_texts,
    run_texts,
    search_texts,
    tool_texts,
)
from broker.texts.tool_texts import MESSAGE_CHARACTERS
from broker.tiers.items import category_item, category_line
from broker.tools.catalog import CatalogEntry
from broker.tools.near_names import unknown_name
from broker.upstreams.server_status import ServerStatus
from codegen import Diagnostic, ToolAnnotations, ToolSpec
from codegen.plain_text import one_line
from codegen.tool_spec import HINTS
from codegen.undefined_names import nowhere_hint
from sandbox import Stopped
from tests.broker import written_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MODULES = tuple(importlib.import_module(one.name) for one in pkgutil.iter_modules(texts.__path__, "broker.texts."))
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
        changed={f"{name}.changed": f"changed: {name}"},
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
    "instructions": lambda name: tool_texts.instructions([name, "memory"]),
    "calls_line": lambda name: run_texts.calls_line([*calls(3), *calls(1), *calls(1, name)]),
    "already_made": lambda name: run_texts.already_made([*calls(20, name)] if name == HOSTILE else calls(2)),
    "stopped": lambda name: run_texts.stopped(StoppedBy(limit="wall_seconds", amount=30)),  # noqa: ARG005  # none in it
    "stopped_after_the_longest_time": lambda name: run_texts.stopped(StoppedBy(limit="wall_seconds", amount=600)),  # noqa: ARG005
    "stopped_at_a_line": lambda name: run_texts.stopped(StoppedBy(limit="calls", amount=1_000, line=3)),  # noqa: ARG005
    "stopped_in_a_loop": lambda name: run_texts.stopped(StoppedBy(limit="calls", amount=1_000, line=3), 1_000),  # noqa: ARG005
    "already_made_nothing_sent": lambda name: run_texts.already_made(
        [record("refused", name), record("not_found", name)]
    ),
    "shorter_timeout": lambda name: run_texts.shorter_timeout(600),  # noqa: ARG005  # none in it
    "displayed": lambda name: run_texts.displayed(2),  # noqa: ARG005
    "left_out": lambda name: run_texts.left_out(len(name), "resource:///runs/run_1/output?offset=16000"),
    "page_end": lambda name: run_texts.page_end("resource:///runs/run_1/output?offset=24000"),  # noqa: ARG005
    "text_of": lambda name: call_texts.text_of("s" * 64 if name == LONG else "git"),
    "cut_in_the_middle": lambda name: call_texts.cut_in_the_middle(len(name), is_in_content=len(name) > 9),
    "a server's error": lambda name: quoted("s" * 64, name, HostPaths(), is_in_content=True),
    "a server's error of many lines": lambda name: quoted(
        "s" * 64, f"{name}\n\n" * 400, HostPaths(), is_in_content=True
    ),
    "a server's JSON-RPC error": lambda name: (
        failed_at_server(listed_tool(), ToolRejectedError("s" * 64, 2**31, name), HostPaths()).message
    ),
    "a script that does not fit the stubs it is sent": lambda name: (
        NotDescribed(
            ("git.log",),
            call_texts.script_not_described([f"git.{name} (line 3)"] * 40, [name] if name != "name" else []),
        )
        .outcome_with_stubs(["git.log"], mistakes(20, min(len(name), 300)))
        .message
    ),
    "past_the_end": lambda name: run_texts.past_the_end(9, "resource:///runs/run_1/output?offset=0"),  # noqa: ARG005
    "not_displayed": lambda name: run_texts.not_displayed(3),  # noqa: ARG005
    "new_session": lambda name: tool_texts.new_session("s_0123456789abcdef"),  # noqa: ARG005
    "unknown_session": tool_texts.unknown_session,
    "no_handle": tool_texts.no_handle,
    "wrong_arguments": lambda name: tool_texts.wrong_arguments("execute_code", f"code: {name} is not of type 'string'"),
    "wrong_names": lambda name: tool_texts.wrong_arguments(
        "execute_code", f"{name!r} was unexpected", ["code", "timeout", "session"]
    ),
    "unknown_tool": lambda name: tool_texts.unknown_tool(f"{name}.tool", list(tool_texts.DESCRIPTIONS)),
    "unknown_tool of no server": lambda name: tool_texts.unknown_tool(name, list(tool_texts.DESCRIPTIONS)),
    "imports": lambda name: tool_texts.imports(["git", "memory"]),  # noqa: ARG005
    "not_described": lambda name: tool_texts.not_described(
        details(name, ("git.git_log",), 30 if name == HOSTILE else 1)
    ),
    "not_described_several": lambda name: tool_texts.not_described(several(name)),
    "described_now": lambda name: tool_texts.described_now([name] * (40 if name == HOSTILE else 1)),
    "outlook": lambda name: tool_texts.outlook([f"{name}.{number}" for number in range(40)], [name, "git.git_push"]),
    "next_fetch": lambda name: tool_texts.next_fetch([name, *(f"{name}.{number}" for number in range(99))]),
    "next_fetch of few": lambda name: tool_texts.next_fetch([name]),
    "nothing_found": lambda name: tool_texts.nothing_found({"query": name}),
    "nothing_found of all": lambda name: tool_texts.nothing_found({}, says_why=name == HOSTILE),
    "nothing_found now": lambda name: tool_texts.nothing_found({}, says_why=name != HOSTILE),
    "nothing_found with filters": lambda name: tool_texts.nothing_found(
        {"query": name, "server": name, "category": name, "annotations": dict.fromkeys(HINTS, True)},
        ["annotations", "category", "server"],
    ),
    "nothing_found of all with a filter": lambda name: tool_texts.nothing_found({"server": name}, ["server"]),
    "shorter_page": lambda name: tool_texts.shorter_page({"query": name, "limit": 300}, 200),
    "only_categories": lambda name: tool_texts.only_categories({"category": "*", "query": name}, ["query"]),
    "list_ended": lambda name: tool_texts.list_ended({"query": name, "cursor": "abc"}),
    "list_ended of all": lambda name: tool_texts.list_ended({"cursor": name}),
    "too_long": lambda name: tool_texts.too_long(["git.git_log", name]),
    "too_long of one": lambda name: tool_texts.too_long([name]),
    "next_categories": lambda name: tool_texts.next_categories("abc"),  # noqa: ARG005
    "next_page": lambda name: tool_texts.next_page("abc"),  # noqa: ARG005
    "no_resource": tool_texts.no_resource,
    "no_resource of a run": lambda name: tool_texts.no_resource(f"resource:///runs/{name}/output?offset=0"),
    "interrupted": lambda name: run_texts.interrupted("run_0123456789abcdef", f"2 calls had been answered. {name}"),
    "not_resumed": run_texts.not_resumed,
    "left_until_back": run_texts.left_until_back,
}


def pending(name: str) -> PendingCall:
    return PendingCall("git", one_line(name, 128), "sha256:0", {})


def refused(name: str, policy: PolicyConfig, *, denial: Denial | None = None, used_up: str = "") -> str:
    """Return what a script is told by a decision."""
    book = GrantBook.of(denials=[denial] if denial is not None else [])
    decision = authorize(pending(name), policy=Policy(policy), grants=book, flow=FlowState(), now=0, used_up=used_up)
    if isinstance(decision, Ask):
        return nobody_answers(pending(name), decision)
    assert isinstance(decision, Deny)
    return decision.reason


# What scripts are told of calls, and models of scripts that were not started.
CALLS = {
    "script_not_described": lambda name: call_texts.script_not_described(
        [f"git.{one_line(name, 128)} (line 3)"] * (40 if name == HOSTILE else 1), [f"git.{name} changed: {name}"]
    ),
    "fetch_them": lambda name: call_texts.fetch_them([f"git.{one_line(name, 128)}"] * (40 if name == HOSTILE else 1)),
    "fetch_them where others are described": lambda name: call_texts.fetch_them(
        [f"git.{one_line(name, 128)}"] * (40 if name == HOSTILE else 1), are_others=True
    ),
    "call_not_described": lambda name: call_texts.call_not_described("git.log", "git.log", name),
    "bad_arguments": lambda name: call_texts.bad_arguments(
        "git.log", [call_texts.fault(f"max_count: {name} is not of type 'integer'", ""), "and 2 more"]
    ),
    "fault": lambda name: call_texts.fault(f"max_count: {name} is not of type 'integer'", call_texts.CONVERT_TO_INT),
    "no_parameter": lambda name: call_texts.no_parameter([name] * 4, [name] * 14),
    "leave_out": call_texts.leave_out,
    "taken_back": lambda name: call_texts.taken_back("git.log"),  # noqa: ARG005
    "input_refused": lambda name: call_texts.input_refused("git", name),
    "forms_enough": lambda name: call_texts.input_refused("git", call_texts.forms_enough(30)),  # noqa: ARG005
    "server_disabled": call_texts.server_disabled,
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
    "cut_off": call_texts.cut_off,
    "lost_answer": lambda name: call_texts.lost_answer("git", f"it ended: {name}"),
    "lost_answer_too_large": lambda name: call_texts.lost_answer("git", "it said too much", is_too_large=True),  # noqa: ARG005
    "bad_answer": lambda name: call_texts.bad_answer("git"),  # noqa: ARG005
    "not_passed_on": lambda name: call_texts.not_passed_on("git.log"),  # noqa: ARG005
    "unfit_result": lambda name: call_texts.unfit_result(name, f"does not fit the tool's outputSchema: {name}"),
    "unfit_result too large": lambda name: call_texts.unfit_result(name, "has too much", is_too_large=True),
    "still_to_be_read": lambda name: call_texts.still_to_be_read("git", name, name),
    "changed_at_server": lambda name: call_texts.changed_at_server("git", name),
    "not_described_now": lambda name: call_texts.not_described_now("git", name),
    "until_back": call_texts.until_back,
    "search_request": call_texts.search_request,
    "only_there": lambda name: hint_texts.only_there(name, 4),
    "gone_after_except": lambda name: hint_texts.gone_after_except(name, 4),
    "no_server_after": lambda name: hint_texts.no_server_after(name, 4),
    "import_it": hint_texts.import_it,
    "import_beside": hint_texts.import_beside,
    "import_server": lambda name: hint_texts.import_server("git", name),
    "write_call": lambda name: hint_texts.write_call("git", "git_log", {"message": name, "count": 1}),
    "write_call of many arguments": lambda name: hint_texts.write_call("git", "git_log", {"message": name * 400}),
    "write_call of no name": lambda name: hint_texts.write_call("git", "git_log", {"from": name}),
    "import_as": lambda name: hint_texts.import_as(name, "side_desk"),
    "nowhere_hint": lambda name: nowhere_hint("jira", "await jira.search()", [name] * 20),
    "nowhere_hint of no server": lambda name: nowhere_hint("rows", "rows()", [name]),
    "of_a_server": call_texts.of_a_server,
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

REFUSALS = {
    "refused": lambda name: refusal_texts.refused(name, refusal_texts.by_a_rule(name), name),
    "refused by a flow": lambda name: refusal_texts.refused(name, refusal_texts.by_a_flow(name), name),
    "refused without a reason": refusal_texts.refused,
    "by_a_rule": refusal_texts.by_a_rule,
    "by_a_flow": refusal_texts.by_a_flow,
    "after_data": lambda name: refusal_texts.after_data(name, [name] * 5, name),
    "quota_title": lambda name: refusal_texts.quota_title(name, 1, name),
    "quota_title of a number": lambda name: refusal_texts.quota_title("", 2, ""),  # noqa: ARG005
    "used_up_in_run": lambda name: refusal_texts.used_up_in_run(name, 1),
    "used_up_for_now": lambda name: refusal_texts.used_up_for_now(name, 10, 60),
    "nobody_answered": lambda name: refusal_texts.nobody_answered(300),  # noqa: ARG005
    "nobody_agreed": lambda name: refusal_texts.nobody_agreed(name, name),
    "of_a_grant": lambda name: refusal_texts.of_a_grant(name, refusal_texts.FOR_OTHER_ARGUMENTS),
    "not_covered": lambda name: refusal_texts.not_covered(
        name, refusal_texts.of_a_grant(name, refusal_texts.FOR_OTHER_ARGUMENTS)
    ),
    "nobody_allowed": lambda name: refusal_texts.nobody_allowed(name, name),
}
CASES |= REFUSALS


def asked(sources: int) -> Ask:
    use = FlowUse("private", tuple(f"notes.{number}" for number in range(sources)), "egress", "ask", "")
    return Ask(Basis("flow", str(use), ""), (use,))


def status(name: str, **more: Any) -> ServerStatus:
    known = {"state": "down", "protocol_version": None, "era": None, "tool_count": 0, "what_to_do": None}
    return ServerStatus(**known | {"name": name, "problem": None, "warnings": ()} | more)


def refused_search(ask: Callable[[], object], kind: type[Exception] = SearchError) -> str:
    with pytest.raises(kind) as caught:
        ask()
    return str(caught.value)


def entry(name: str, near: Sequence[str] = (), *, is_ambiguous: bool = False, is_withdrawn: bool = False) -> str:
    made = tool_descriptions.unknown_entry(name, near, [], is_ambiguous=is_ambiguous, is_withdrawn=is_withdrawn)
    return str(made["error"])


def message(document: dict[str, Any]) -> str:
    return str(document["error"]["message"])


def mistakes(count: int, characters: int) -> list[Diagnostic]:
    return [Diagnostic(99_999, 99_999, "rule", "m" * characters, "h" * characters)] * count


# What is said of searches, of reads of descriptions, and of scripts that are not started.
OTHERS = {
    "nobody_answers, a flow": lambda name: nobody_answers(pending(name), asked(40 if name == HOSTILE else 1)),
    "refused, a flow": lambda name: str(
        _refused(pending(name), Basis("flow", "", name), f"by a flow rule of the policy, {asked(40).flows[0]}").reason
    ),
    "refused, a quota": lambda name: refused(name, PolicyConfig(), used_up=f"the quota of {name} is used up"),
    "unknown server": lambda name: unknown_name("server", name, [f"{one_line(name, 200)}_server"] * 9),
    "unknown server, unlike the others": lambda name: unknown_name("server", "zzz", [one_line(name, 200)] * 9),
    "unknown server, of none": lambda name: unknown_name("server", name, []),
    "unknown category": lambda name: unknown_name("category", name, ["issues", "mail"]),
    "woken_for_nothing": lambda name: search_texts.woken_for_nothing(status(name, tool_count=9)),
    "down": lambda name: search_texts.down(status(name, problem=f"it ended: {name}", tool_count=9)),
    "down, never seen, alone": lambda name: search_texts.down(status(name, problem=f"it ended: {name}"), is_alone=True),
    "down, never seen": lambda name: search_texts.down(status(name, problem=f"it ended: {name}")),
    "more_down": lambda name: search_texts.more_down([name] * 40),
    "more_down, one": lambda name: search_texts.more_down([name]),
    "still_connecting": lambda name: search_texts.still_connecting([name] * 40),
    "asleep": lambda name: search_texts.asleep([status(name, about=f"about {name}")] * 40),
    "categories": lambda name: search_texts.categories(
        {f"{one_line(name, 50)}/{number}": [0] * number for number in range(40)}
    ),
    "categories of servers asleep": lambda name: search_texts.categories({"mail": [0]}, [name] * 40),
    "category asleep": lambda name: category_line(category_item(name, (), (), [name] * 40)),
    "category asleep, with words of the operator": lambda name: category_line(
        category_item(name, (), (), [name] * 40, about=name)
    ),
    # A name is at most as long as the config takes it.
    "tools_of": lambda name: category_line(
        category_item(
            one_line(name, 80), [listed(name)] * 9, [listed(name)] * 3, [name] * 40, telling=[f"word of {name}"] * 9
        )
    ),
    "of_servers": lambda name: category_line(
        category_item(
            "pair", [listed(name)], [listed(name)], about=search_texts.of_servers({name: f"about {name}", "two": ""})
        )
    ),
    "search, no detail": lambda name: refused_search(lambda: Detail.parse(f"no {name}")),
    "search, no limit": lambda name: refused_search(SearchRequest(query=name, limit=10**50).offset),
    "search, a long expression": lambda name: refused_search(lambda: matching("x" * 501 + name, [])),
    "search, a wrong expression": lambda name: refused_search(lambda: matching(f"({name}", [])),
    "search, no annotation": lambda name: refused_search(lambda: dispatch._hints({name: True})),
    "execute_code, no timeout": lambda name: str(dispatch._unusable("1", -1.0) or name),
    "fetched_too_often": lambda name: description_texts.fetched_too_often(3.0),  # noqa: ARG005
    "fetched_too_often by little": lambda name: description_texts.fetched_too_often(0.1),  # noqa: ARG005
    "called_by_itself": lambda name: tool_texts.called_by_itself("search_tools", "call_tool"),  # noqa: ARG005
    "not_offered": lambda name: tool_texts.not_offered(name, [f"git.{one_line(name, 250)}"] * 3),
    "not_offered and unlike others": lambda name: tool_texts.not_offered(name, [], is_withdrawn=True),
    "several_offered": lambda name: tool_texts.several_offered(name, [f"{number}.{name}" for number in range(20)]),
    "session_of_calls": lambda name: tool_texts.session_of_calls("s_0123456789abcdef", "call_tool"),  # noqa: ARG005
    "missing_selection": lambda name: message(tool_descriptions.missing_selection([name])),
    "too_long_uri": lambda name: description_texts.too_long_uri(50_000, 100),  # noqa: ARG005
    "too_many_fetches": lambda name: message(tool_descriptions.too_many_fetches(3.0)),  # noqa: ARG005
    # A tool is offered by at most 64 ASCII characters.
    "description_required": lambda name: message(
        tool_descriptions.description_required(offered(name), None, f"changed: {name}")
    ),
    "description_required in a session": lambda name: message(
        tool_descriptions.description_required(offered(name), "s_0123456789abcdef", name if name == HOSTILE else "")
    ),
    "description_required, as JSON with the URI to read": lambda name: json.dumps(
        tool_descriptions.description_required(offered(name), "s_0123456789abcdef", LONG if name == HOSTILE else "")
    ),
    "unknown_entry": lambda name: entry(name, [f"git.{one_line(name, 250)}"] * 3),
    "unknown_entry and unlike others": lambda name: entry(name, is_withdrawn=True),
    "unknown_entry of several": lambda name: entry(name, [f"git.{one_line(name, 250)}"] * 20, is_ambiguous=True),
    "JSON-RPC error": lambda name: str(ToolRejectedError("git", -32603, name)),
    "resumable": lambda name: RunInterruptedError("run_1", name, executed="", can_resume=True).what_to_do,
    "not_started": lambda name: not_started(mistakes(20, 300 if name == HOSTILE else 40)).message,
    "unreadable": lambda name: unreadable(Stopped("memory_bytes", 1), name).message,
}
CASES |= OTHERS

SEARCHES = {
    "no_detail": search_texts.no_detail,
    "no_limit": lambda name: search_texts.no_limit(name, 200),
    "none_of": lambda name: search_texts.none_of("mode", ["auto", "keyword"], name),
    "expression_too_long": lambda name: search_texts.expression_too_long(501 + len(name), 500),
    "no_expression": search_texts.no_expression,
    "different_lengths": search_texts.different_lengths,
    "unknown_name": lambda name: search_texts.unknown_name("server", name, [name] * 3, [name]),
}
CASES |= SEARCHES

RESULTS = {
    "too_deep": lambda name: result_texts.too_deep(60),  # noqa: ARG005
    "too_many_values": lambda name: result_texts.too_many_values(200_000),  # noqa: ARG005
    "too_large": lambda name: result_texts.too_large(4_194_304),  # noqa: ARG005
    "too_large_an_integer": lambda name: result_texts.too_large_an_integer(4_096),  # noqa: ARG005
    "no_blocks": lambda name: result_texts.no_blocks(1_000),  # noqa: ARG005
    "unlike_schema": result_texts.unlike_schema,
}
CASES |= RESULTS

URI = "resource:///tool_descriptions"
DESCRIPTIONS = {
    "workflow": lambda name: description_texts.workflow(URI),  # noqa: ARG005
    "scripts_workflow": lambda name: description_texts.scripts_workflow(URI),  # noqa: ARG005
    "system_prompt": lambda name: description_texts.system_prompt(URI, "TOOL_DESCRIPTION_REQUIRED"),  # noqa: ARG005
    "of_server": description_texts.of_server,
    "described_later": description_texts.described_later,
    "last_words": call_texts.last_words,
    "words_of_error": call_texts.words_of_error,
    "bounded_problem": lambda name: call_texts.bounded_problem(f'it ended: "{name}"', 13),
    "answered_with_error": lambda name: call_texts.answered_with_error(one_line(name, 64), -32_603),
    "server_down": lambda name: description_texts.server_down(name, f"it ended: {name}"),
    "hint_changed": lambda name: description_texts.hint_changed("read_only", "yes", "not said"),  # noqa: ARG005
}
CASES |= DESCRIPTIONS

BESIDE = {
    "mistakes_found": lambda name: check_texts.mistakes_found([f"1:1: {name}"] * 9, 620, are_all=True),
    "not_within": lambda name: check_texts.not_within("cpu_seconds"),  # noqa: ARG005
    "place": lambda name: check_texts.place(name, 3, f"{name}s"),
    "no_tool": lambda name: call_texts.no_tool(name, [f"git.{one_line(name, 250)}"] * 3),
    "no_tool any more": lambda name: call_texts.no_tool(name, [], is_withdrawn=True),
    "no_tool of one server alone": lambda name: call_texts.no_tool(
        name, [f"git.{one_line(name, 250)}"] * 20, is_ambiguous=True
    ),
    "json_rpc_error": lambda name: call_texts.json_rpc_error(-32_603),  # noqa: ARG005
    "no_offset": lambda name: run_texts.no_offset(name, "resource:///runs/run_1/output?offset=24000"),
    "go_on": lambda name: run_texts.go_on("run_1", can_resume=True),  # noqa: ARG005
    "go_on of a run without its content": lambda name: run_texts.go_on("run_1", can_resume=False),  # noqa: ARG005
    "no_timeout": lambda name: tool_texts.no_timeout(name, 600),
    "no_annotation": lambda name: tool_texts.no_annotation(name, HINTS),
}
CASES |= BESIDE


def offered(name: str) -> str:
    return f"{'s' * 20}__{'t' * 31}-0123456789" if name == HOSTILE else "git__log"


def listed(name: str) -> CatalogEntry:
    spec = ToolSpec(name, name, None, name, {"type": "object"}, None, ToolAnnotations())
    return CatalogEntry(spec, "server", "tool")


# What may be longer, with its own bound: each is marked as a server's words, or is of the script itself.


def listed_tool() -> CatalogEntry:
    return CatalogEntry(ToolSpec("git", "log", None, "", {"type": "object"}, None, ToolAnnotations()), "git", "log")


# Who reads the texts of modules that are none for a model.
FOR_OTHERS = {
    "people who run the broker": (
        "broker/audit/",
        "broker/authorization/idle_parts.py",
        "broker/authorization/kept_grants.py",
        "broker/authorization/patterns.py",
        "broker/authorization/policy.py",
        "broker/authorization/policy_config.py",
        "broker/authorization/policy_problems.py",
        "broker/cli/",
        "broker/config/",
        "broker/disclosure/settings.py",
        "broker/keyrings.py",
        "broker/named_file.py",
        "broker/recordings/",
        "broker/server/http.py",
        "broker/server/issuer_keys.py",
        "broker/server/runs.py",
        "broker/server/settings.py",
        "broker/server/way_to_client.py",
        "broker/shortage.py",
        "broker/store.py",
        "broker/store_connection.py",
        "broker/store_files.py",
        "broker/unique_keys.py",
        "broker/upstreams/carried_text.py",
        "broker/upstreams/login.py",
        "broker/upstreams/oauth_settings.py",
        "broker/upstreams/server_config.py",
    ),
    "people who are asked": (
        "broker/authorization/addresses.py",
        "broker/authorization/definitions.py",
        "broker/authorization/form_reading.py",
        "broker/authorization/forms.py",
        "broker/authorization/question_text.py",
        "broker/server/eliciting.py",
    ),
    "authors of programs": (
        "broker/__init__.py",
        "broker/api_arguments.py",
        "broker/authorization/choices.py",
        "broker/authorization/grants.py",
        "broker/authorization/http_answers.py",
        "broker/authorization/predicates.py",
        "broker/authorization/question_box.py",
        "broker/recorded_runs.py",
        "broker/runs/needed_servers.py",
        "broker/runs/parking.py",
        "broker/sessions.py",
        "broker/server/__init__.py",
        "broker/surface/definitions.py",
    ),
    "clients, below the protocol": (
        "broker/server/agents.py",
        "broker/server/connections.py",
        "broker/server/host_and_origin.py",
        "broker/server/request_ids.py",
        "broker/server/request_values.py",
        "broker/server/slow_requests.py",
        "broker/server/stated_length.py",
        "broker/server/stdio.py",
        "broker/server/tokens.py",
        "broker/server/tools_api.py",
        "broker/upstreams/in_process.py",
    ),
    "nobody: words to search by, patterns, what goes to the type checker": (
        "broker/search/",
        "codegen/checking/checker_input.py",
        "codegen/checking/language_server.py",
        "codegen/checking/type_checker.py",
        "codegen/identifiers.py",
    ),
    "the reader of a stub, which has a budget of its own": (
        "broker/server/sampling.py",
        "broker/tiers/",
        "broker/tools/catalog.py",
        "codegen/schemas/",
        "codegen/stubs/",
    ),
}
OUTSIDE = (
    "broker/upstreams/",  # what is wrong with a server
    "broker/calls/alternatives.py",  # what is wrong with a value, by its JSON Schema
    "broker/calls/bounded_validator.py",
    "broker/calls/json_schema.py",
    "codegen/",  # what is wrong with a script
    "sandbox/guest/",  # what the guest's Python says
)
"""Where sentences for models stand beside `MODULES`; they are put into texts of these, or are errors of the script."""

OF_SEARCH = {"cursors", "pages", "patterns", "tool_search", "vectors"}

# Where texts of a module are put in, cut at so many characters: in one of the texts above, or in a script's own error.
PUT_IN = {
    "broker/calls/alternatives.py": 300,
    "broker/calls/bounded_validator.py": 300,
    "broker/upstreams/": 400,
    "codegen/checking/": 300,
    "codegen/undefined_names.py": 300,
    "sandbox/guest/": 4_000,
}


CONSTANTS = {
    name: text
    for module in MODULES
    for name, text in vars(module).items()
    if name.isupper() and name[0] != "_" and isinstance(text, str)
} | tool_texts.DESCRIPTIONS


def for_models() -> dict[str, list[ast.Constant | ast.JoinedStr]]:
    """Return the sentences of modules that may reach a model, but for those of `MODULES`, which are cases."""
    others = tuple(prefix for prefixes in FOR_OTHERS.values() for prefix in prefixes)
    cases = {f"{module.__name__.replace('.', '/')}.py" for module in MODULES}
    of_search = {f"broker/search/{name}.py" for name in OF_SEARCH}
    modules = [one for one in written_texts.modules() if one in of_search or not one.startswith(others)]
    found = {module: written_texts.sentences_of(module) for module in modules if module not in cases}
    return {module: sentences for module, sentences in found.items() if sentences}


def shown() -> str:
    parts = [f"## {name}\n{make('name')}" for name, make in CASES.items()]
    parts += [f"## {name}\n{text}" for name, text in CONSTANTS.items()]
    for module, sentences in for_models().items():
        parts.append("\n".join([f"## {module}", *(repr(written_texts.shown(one)) for one in sentences)]))
    return "\n\n".join(parts) + "\n"


def test_the_texts_are_word_for_word_as_approved():
    assert shown() == SNAPSHOT.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["name", LONG, HOSTILE])
def test_no_text_is_long_or_live_whatever_is_named_in_it(case, name):
    text = CASES[case](name)
    assert len(text) < MESSAGE_CHARACTERS
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


def test_a_name_of_a_tool_is_not_taken_for_a_call():
    line = run_texts.calls_line([record("ok", "x ok; git.push"), *calls(1)])
    assert line == 'calls: "git.x ok; git.push" ok; 0git.log ok'


def test_sentences_for_models_stand_in_the_texts_alone_or_where_it_is_written_down():
    assert [module for module in for_models() if not module.startswith(OUTSIDE)] == []


def test_no_sentence_is_longer_than_the_place_where_it_is_put_in():
    for module, sentences in for_models().items():
        most = next((most for prefix, most in PUT_IN.items() if module.startswith(prefix)), MESSAGE_CHARACTERS)
        assert [one for one in sentences if written_texts.fixed_characters(one) >= most] == [], module


def test_every_sentence_with_a_value_in_it_is_made_by_a_case_or_put_into_one():
    made = [*(make("name") for make in CASES.values()), *CONSTANTS.values()]
    lacking = [
        (module, written_texts.shown(one))
        for module, sentences in for_models().items()
        if not module.startswith(tuple(PUT_IN))
        for one in sentences
        if isinstance(one, ast.JoinedStr) and not any(map(written_texts.pattern_of(one).search, made))
    ]
    assert lacking == []


def test_every_module_that_is_named_here_has_sentences():
    found = {module for module in written_texts.modules() if written_texts.sentences_of(module)}
    named = [*PUT_IN, *(prefix for prefixes in FOR_OTHERS.values() for prefix in prefixes)]
    assert [prefix for prefix in named if not any(module.startswith(prefix) for module in found)] == []
