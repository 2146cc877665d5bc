"""What a run has received, as flow rules are told of it."""

from __future__ import annotations

from broker.authorization.calls import PendingCall, ToolFacts
from broker.authorization.flow import FlowState

TEXT = "the minutes of the meeting on the merger of the two companies"


def call(server, tool, **arguments):
    return PendingCall(server, tool, "sha256:1", arguments, ToolFacts(labels=frozenset({"private"})))


def test_a_label_names_the_tools_that_it_came_from_and_how_often_but_not_the_one_that_is_called():
    flow = FlowState()
    for server, tool in (("notes", "read"), ("mail", "send"), ("notes", "read"), ("notes", "list")):
        flow.receive(call(server, tool), "text")
    assert flow.sources("private", "mail.send") == ("notes.read (2 calls)", "notes.list (1 call)")
    assert flow.sources("private", "notes.read") == ("mail.send (1 call)", "notes.list (1 call)")
    assert flow.sources("untrusted", "mail.send") == ()


def test_what_only_the_tool_itself_has_answered_is_no_flow_to_its_next_call():
    flow = FlowState()
    flow.receive(call("mail", "send"), "text")
    assert flow.sources("private", "mail.send") == ()
    assert flow.sources("private", "notes.read") == ("mail.send (1 call)",)


def test_text_is_copied_where_another_server_gave_it():
    flow = FlowState()
    flow.receive(call("notes", "read"), TEXT)
    assert flow.copies(call("notes", "write", text=TEXT)) == ()
    assert [(copy.source, copy.argument) for copy in flow.copies(call("mail", "send", body=TEXT))] == [
        ("notes.read", "/body")
    ]
