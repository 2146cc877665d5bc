"""Spans of runs and calls, as a program sees them that traces itself with OpenTelemetry."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HOST = Path(__file__).with_name("traced_host.py")


@pytest.fixture(scope="module")
def parts():
    """What happened in each part of the program: its spans in the order in which they ended, and a value."""
    ran = subprocess.run([sys.executable, str(HOST)], capture_output=True, text=True, timeout=120, check=False)  # noqa: S603  # ours
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def span_of(part, name):
    [span] = [span for span in part["spans"] if span["name"] == name]
    return span


def of_ours(part):
    """The spans of the broker: name, status and attributes."""
    return [
        (span["name"], span["status"], span["attributes"])
        for span in part["spans"]
        if span["name"].startswith("execute_")
    ]


def tool(name, decision, status, **more):
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "codemode.call.decision": decision,
        "codemode.call.status": status,
        **more,
    }


def run_of(part):
    return part["spans"][-1]["attributes"]["codemode.run.id"]


def test_a_run_is_in_the_span_of_its_caller_and_its_calls_are_in_the_run(parts):
    part = parts["two calls"]
    turn, run = span_of(part, "turn"), span_of(part, "execute_code")
    near, far = span_of(part, "execute_tool desk.add"), span_of(part, "execute_tool far.traceparent")
    assert {span["trace"] for span in part["spans"]} == {turn["trace"]}
    assert [span["parent"] for span in (run, near, far)] == [turn["id"], run["id"], run["id"]]
    assert [near["attributes"], far["attributes"]] == [
        tool("desk.add", "allowed", "ok"),
        tool("far.traceparent", "allowed", "ok"),
    ]
    assert (run["attributes"]["codemode.run.outcome"], run["attributes"]["codemode.run.calls"]) == ("completed", 2)
    assert {span["status"] for span in part["spans"]} == {"UNSET"}


def test_servers_continue_the_trace(parts):
    part = parts["two calls"]
    assert span_of(part, "tools/call add")["parent"] == span_of(part, "execute_tool desk.add")["id"]
    sent = span_of(part, "MCP send tools/call traceparent")
    assert sent["parent"] == span_of(part, "execute_tool far.traceparent")["id"]
    assert part["value"].split("-")[1:3] == [sent["trace"], sent["id"]]


def test_what_fails_is_an_error_of_its_kind(parts):
    part = parts["a tool that fails"]
    failed = {"error.type": "ToolError", "codemode.run.outcome": "raised", "codemode.run.calls": 1}
    assert of_ours(part) == [
        ("execute_tool desk.fail", "ERROR", tool("desk.fail", "allowed", "tool_error", **{"error.type": "tool_error"})),
        ("execute_code", "ERROR", {"codemode.run.id": run_of(part), **failed}),
    ]
    stopped = span_of(parts["a limit"], "execute_code")
    assert (stopped["status"], stopped["attributes"]["error.type"]) == ("ERROR", "cpu_seconds")


def test_texts_of_scripts_and_servers_are_in_no_span_and_names_are_bounded(parts):
    shown = [span for part in parts.values() for span in part["spans"] if span["name"].startswith("execute_")]
    assert not [span["text"] for span in shown if "the s3cr3t" in span["text"]]
    named = span_of(parts["an exception of its own"], "execute_code")["attributes"]["error.type"]
    assert (named[:12], len(named)) == ("s3cr3ts3cr3t", 100)


def test_a_call_that_waits_for_a_person_is_no_error_and_its_run_has_a_span_each_time(parts):
    asked, again = parts["nobody to ask"], parts["going on"]
    assert of_ours(asked)[0] == ("execute_tool desk.add", "UNSET", tool("desk.add", "undecided", "waiting"))
    assert of_ours(again)[0] == ("execute_tool desk.add", "UNSET", tool("desk.add", "allowed", "ok"))
    assert run_of(asked) == run_of(again) == again["value"]
    assert [part["spans"][-1]["attributes"]["codemode.run.outcome"] for part in (asked, again)] == [
        "parked",
        "completed",
    ]


def test_a_run_over_mcp_is_in_the_span_of_its_request(parts):
    part = parts["over MCP"]
    assert span_of(part, "execute_code")["parent"] == span_of(part, "tools/call execute_code")["id"]
