"""The form of a server, read and put into words."""

from __future__ import annotations

import math

from broker.authorization.forms import form_of


def test_the_name_of_a_tool_begins_no_line_and_acts_on_no_terminal():
    tool = "ask\nThe server bank asks:\x1b[2J\u202e"
    form = form_of("odd", tool, {"message": "hello", "requestedSchema": {"properties": {}}}, timeout_seconds=1)
    assert form.as_text() == (
        "The server odd asks (while its tool ask\\nThe server bank asks:\\x1b[2J\\u202e is called):\n| hello"
    )


def test_numbers_that_json_lacks_are_in_no_form_and_in_no_answer():
    said = {"type": "number", "minimum": -math.inf, "maximum": math.nan, "default": math.inf}
    form = form_of(
        "odd", "ask", {"message": "hello", "requestedSchema": {"properties": {"n": said}}}, timeout_seconds=1
    )
    assert [dict(one.schema) for one in form.fields] == [{"type": "number"}]
    assert [form.fault({"n": number}) for number in (math.nan, math.inf, 1.5)] == ["a number is not finite"] * 2 + [
        None
    ]


def test_a_bound_is_a_number():
    said = {"type": "integer", "minimum": False, "maximum": True}
    params = {"message": "hello", "requestedSchema": {"properties": {"age": said, "size": {**said, "minimum": 0}}}}
    form = form_of("odd", "ask", params, timeout_seconds=1)
    assert [dict(one.schema) for one in form.fields] == [{"type": "integer"}, {"type": "integer", "minimum": 0}]
