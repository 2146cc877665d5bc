"""Whatever a guest sends is a step or a protocol error, and costs little."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sandbox import Call, Completed, Limits, ProtocolError, Raised, Reference, Stopped
from sandbox.guest_messages import MAX_VALUES, Step, decode_references, decode_step
from sandbox.json_bounds import decoded_bytes
from sandbox.limits import MIB

LIMITS = Limits()
SMALL = Limits(value_bytes=100, argument_bytes=100, depth=4)
TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)
NUMBERS = st.integers() | st.floats() | st.sampled_from([1e308, -0.0, 10**400, 2**64])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
CALLS = st.fixed_dictionaries(
    {}, optional={"id": JSON | st.integers(0, 3), "function": JSON | TEXT, "arguments": JSON | st.just({"a": 1})}
)
RAISED = st.fixed_dictionaries({}, optional=dict.fromkeys(("type", "message", "traceback"), JSON | TEXT))
REFERENCES = st.fixed_dictionaries(
    {"namespace": TEXT, "function": st.none() | TEXT, "line": st.integers() | JSON}, optional={"is_bare": JSON}
)
OUTCOMES = st.fixed_dictionaries(
    {}, optional={"completed": JSON, "raised": RAISED | JSON, "stopped": st.just("memory_bytes") | JSON}
)
STEPS = st.fixed_dictionaries(
    {},
    optional={
        "calls": st.lists(CALLS | JSON, max_size=4) | JSON,
        "cancelled": st.lists(st.integers() | JSON, max_size=4) | JSON,
        "timer": st.none() | NUMBERS | JSON,
        "outcome": st.none() | OUTCOMES | JSON,
        "extra": JSON,
    },
)


def step(**fields) -> str:
    return json.dumps(fields, separators=(",", ":"))


def one_call(**fields) -> str:
    return step(calls=[{"id": 1, "function": "good.echo", "arguments": {}} | fields])


def is_step_or_error(text: str, limits: Limits) -> None:
    try:
        found = decode_step(text, limits)
    except ProtocolError:
        return
    assert isinstance(found, Step)
    assert found.timer is None or isinstance(found.timer, float)
    assert len({call.id for call in found.calls}) == len(found.calls)
    for call in found.calls:
        assert type(call.id) is int
        json.dumps(call.arguments, allow_nan=False, ensure_ascii=False).encode()
    if isinstance(found.outcome, Completed):
        json.dumps(found.outcome.value, allow_nan=False, ensure_ascii=False).encode()


def test_a_step_leaves_out_what_it_has_nothing_of():
    assert decode_step(step(), LIMITS) == Step(characters=2)
    whole = step(calls=[], cancelled=[], timer=None, outcome=None)
    assert decode_step(whole, LIMITS) == Step(characters=len(whole))


@given(TEXT)
@example('"' + '\\"' * 3)
@example("[" * 100_000)
@example('{"calls":[],"cancelled":[],"timer":1e999,"outcome":null}')
@example("9" * 5_000)
def test_any_text_is_a_step_or_a_protocol_error(text):
    is_step_or_error(text, LIMITS)
    is_step_or_error(text, SMALL)


@given(st.binary())
def test_any_bytes_are_a_step_or_a_protocol_error(data):
    is_step_or_error(data.decode("latin-1"), LIMITS)


@settings(max_examples=500)
@given(STEPS, st.booleans())
def test_anything_shaped_like_a_step_is_a_step_or_a_protocol_error(message, ensure_ascii):
    text = json.dumps(message, ensure_ascii=ensure_ascii)
    is_step_or_error(text, LIMITS)
    is_step_or_error(text, SMALL)


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_step_is_a_step_or_a_protocol_error(data):
    text = one_call(arguments={"text": 'a "quoted" \\ text', "list": [1, 2.5, None]}, function="good.echo")
    for _ in range(data.draw(st.integers(1, 5))):
        begin = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(begin, min(len(text), begin + 10)))
        text = text[:begin] + data.draw(st.text('{}[]",:\\0e-tn', max_size=10)) + text[end:]
    is_step_or_error(text, LIMITS)


@given(JSON | REFERENCES | RAISED)
def test_references_are_references_or_a_protocol_error(message):
    for text in (json.dumps(message), json.dumps({"references": [message]}), json.dumps({"raised": message})):
        try:
            found = decode_references(text, LIMITS)
        except ProtocolError:
            continue
        assert isinstance(found, Raised) or all(isinstance(one, Reference) for one in found)


def test_a_step_holds_calls_timer_and_cancellations():
    text = step(calls=[{"id": 7, "function": "a.b", "arguments": {"x": [1]}}], cancelled=[3], timer=2)
    found = decode_step(text, LIMITS)
    size = decoded_bytes(text)
    assert found == Step((Call(7, "a.b", {"x": [1]}),), (3,), 2.0, characters=len(text), decoded_bytes=size)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 100_000,
        "a, b, [c], {d}, " * 10_000,
        list(range(1_000, 50_000)),
        [[] for _ in range(20_000)],
        [{} for _ in range(20_000)],
        [{"a": number} for number in range(20_000)],
        ["ab"] * 20_000,
    ],
)
def test_what_calls_take_in_memory_is_known_before_they_are_decoded(value):
    text = json.dumps(value, separators=(",", ":"))
    tracemalloc.start()
    decoded = json.loads(text)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert decoded == value
    assert taken < decoded_bytes(text) + 1_000 < 5 * taken


def test_a_value_comes_out_inert():
    found = decode_step(step(outcome={"completed": {"\x1b": ["\r"]}}), LIMITS)
    assert found.outcome == Completed({"\\x1b": ["\\x0d"]})


def test_the_largest_id_and_the_longest_name_come_through_and_a_name_is_inert():
    name = "\ud800\u202e" + "x" * 998
    assert decode_step(one_call(id=2**63 - 1, function=name), LIMITS).calls == (
        Call(2**63 - 1, "\\ud800\\u202e" + "x" * 998, {}),
    )


def test_an_exception_comes_out_inert_and_short():
    raised = {"type": "E\x1b", "message": "m" * 50_000, "traceback": "\u202e"}
    outcome = decode_step(step(outcome={"raised": raised}), LIMITS).outcome
    assert outcome == Raised("E\\x1b", "m" * 20_000, "\\u202e")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the guest sent something that is not JSON"),
        (step() + step(), "the guest sent something after its JSON"),
        ("null", "the guest sent something that is not an object"),
        (step(calls=None), "a message's calls is not a list"),
        (step(cancelled={}), "a message's cancelled is not a list"),
        (step(cancelled=[True]), "a call's id is not an integer"),
        (step(timer="soon"), "a step's timer is not a number"),
        (step(timer=True), "a step's timer is not a number"),
        (step(timer=10**400), "a step's timer is out of range"),
        (step(timer=float("nan")), "the guest sent something that is not JSON"),
        (step(calls=["x"]), "the guest sent something that is not a call"),
        (one_call(arguments=[]), "the guest sent something that is not a call"),
        (one_call(function=5), "the guest sent something that is not a call"),
        (one_call(id=1.0), "a call's id is not an integer"),
        (one_call(id=0), "a call's id is out of range"),
        (one_call(id=2**63), "a call's id is out of range"),
        (step(cancelled=[10**400]), "a call's id is out of range"),
        (one_call(function="x" * 1_001), "a call's function has more than 1000 characters"),
        (one_call(arguments={"a": "\ud800"}), "a call's arguments hold half of a surrogate pair"),
        (one_call(arguments={"\udfff": 1}), "a call's arguments hold half of a surrogate pair"),
        (one_call(arguments={"a": float("inf")}), "the guest sent something that is not JSON"),
        (step(calls=[json.loads(one_call())["calls"][0]] * 2), "two calls of a step have the same id"),
        (step(outcome={}), "the guest sent something that is not an outcome"),
        (step(outcome={"stopped": "wall_seconds"}), "the guest sent something that is not an outcome"),
        (step(outcome={"raised": None}), "the guest sent something that is not an exception"),
        (step(outcome={"raised": {"type": 1}}), "a message's type is not text"),
    ],
)
def test_what_is_wrong_with_a_step_is_said(text, message):
    with pytest.raises(ProtocolError) as caught:
        decode_step(text, LIMITS)
    assert str(caught.value) == message


@pytest.mark.parametrize("value", ["1e999", "-1e999", "1" + "0" * 400 + ".0"])
def test_a_number_beyond_floats_is_refused(value):
    with pytest.raises(ProtocolError, match="not JSON"):
        decode_step(step(outcome={"completed": 0}).replace(":0}", f":{value}}}"), LIMITS)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [1, 4])
def test_nesting_up_to_the_limit_comes_through(depth):
    assert decode_step(step(outcome={"completed": nested(depth)}), SMALL).outcome == Completed(nested(depth))
    arguments = {"a": nested(depth - 1)} if depth > 1 else {}
    assert decode_step(one_call(arguments=arguments), SMALL).calls == (Call(1, "good.echo", arguments),)


@pytest.mark.parametrize("depth", [5, 6, 1_000])
def test_deeper_nesting_is_the_limit_depth(depth):
    # json.dumps of the deep one would recurse too far here as well.
    value = "[" * depth + "]" * depth
    assert decode_step(step(outcome={"completed": 0}).replace(":0}", f":{value}}}"), SMALL).outcome == Stopped(
        "depth", 4
    )
    text = one_call(arguments={"a": 0}).replace(":0}", f":{value[1:-1]}}}")
    assert decode_step(text, SMALL).outcome == Stopped("depth", 4)


def test_brackets_in_strings_do_not_nest():
    assert decode_step(step(outcome={"completed": '[{"' * 20}), SMALL).outcome == Completed('[{"' * 20)


@given(JSON, st.booleans())
def test_nesting_is_counted_whatever_strings_hold(value, ensure_ascii):
    text = json.dumps({"calls": [], "cancelled": [], "outcome": {"completed": value}}, ensure_ascii=ensure_ascii)
    outcome = decode_step(text, Limits(depth=2)).outcome if "NaN" not in text and "Infinity" not in text else None
    assert outcome is None or (outcome == Stopped("depth", 2)) is (depth_of(value) > 2)


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


def test_a_value_beyond_its_limit_is_the_limit_value_bytes():
    assert decode_step(step(outcome={"completed": "x" * 98}), SMALL).outcome == Completed("x" * 98)
    assert decode_step(step(outcome={"completed": "x" * 99}), SMALL).outcome == Stopped("value_bytes", 100)
    assert decode_step(step(outcome={"completed": "x" * 6 * MIB}), SMALL).outcome == Stopped("value_bytes", 100)


def test_a_call_beyond_every_limit_is_the_limit_argument_bytes():
    text = one_call(arguments={"a": "x" * 6 * MIB})
    assert decode_step(text, SMALL).outcome == Stopped("argument_bytes", 100)


@pytest.mark.parametrize(
    "piece", ["0,", "[],", "{},", "[[[[[[[[[[]]]]]]]]]],", '{"a":{"b":{}}},', '"",', '"abc",', "1.5,"]
)
def test_decoding_takes_the_host_at_most_64_mib(piece):
    head, tail = '{"outcome":{"completed":[', "0]}}"
    weight = piece.count(",") + 4 * (piece.count("[") + piece.count("{"))
    text = head + piece * min(MAX_VALUES // weight - 40, 5 * MIB // len(piece)) + tail
    tracemalloc.start()
    try:
        outcome = decode_step(text, Limits(value_bytes=8 * MIB)).outcome
        assert isinstance(outcome, Completed)
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
    finally:
        tracemalloc.stop()


def test_too_many_values_are_the_limit_values():
    found = decode_step(step(outcome={"completed": [0] * (MAX_VALUES + 10)}), LIMITS)
    assert found.outcome == Stopped("values", MAX_VALUES)
    assert isinstance(decode_step(step(outcome={"completed": "," * (MAX_VALUES + 10)}), LIMITS).outcome, Completed)


@pytest.mark.parametrize("text", ['"' + '\\"' * 2 * MIB, '\\"' * 2 * MIB, '"' * 4 * MIB, '"\\' * 2 * MIB])
def test_text_made_of_quotes_is_read_in_one_pass(text):
    # Quadratic time would take hours here.
    is_step_or_error(text + "[" * 100 + "," * (MAX_VALUES + 1), Limits(value_bytes=8 * MIB))


def test_memory_that_ran_out_is_the_limit_memory_bytes():
    found = decode_step(step(outcome={"stopped": "memory_bytes"}), Limits(memory_bytes=64 * MIB))
    assert found.outcome == Stopped("memory_bytes", 64 * MIB)


def test_references_have_a_line_and_may_have_no_function():
    text = '{"references":[{"namespace":"git","function":null,"line":3}]}'
    assert decode_references(text, LIMITS) == (Reference("git", None, 3),)
