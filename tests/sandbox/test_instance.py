"""One instance: entered, advanced tick by tick, ended; what a trap leaves and what it does not."""

from __future__ import annotations

import pytest

from sandbox import ImageError, Limits, Raised, Stopped
from sandbox.host_functions import entered
from sandbox.host_messages import encode_start
from sandbox.instance import Instance
from sandbox.terms import BEFORE_ANY_RUN, Terms


@pytest.fixture
def printed():
    return []


@pytest.fixture
def make(image, printed):
    """Makes instances that are closed after the test."""
    made = []

    def make(**limits) -> Instance:
        instance = Instance(image)
        instance.take_on(Terms(Limits(**limits), 1, 0), lambda number, text: printed.append((number, text)))
        made.append(instance)
        return instance

    yield make
    for instance in made:
        instance.close()


def finish(instance: Instance, script: str, seconds: float = 60) -> str | Raised | Stopped:
    entry = instance.enter("start", encode_start(script, "s.py", {}, BEFORE_ANY_RUN), seconds)
    while not entry.advance():
        assert entered.guest is None
    return entry.answer


def test_an_entry_ends_with_a_message(make):
    answer = finish(make(), "1 + 1")
    assert isinstance(answer, str)
    assert '"completed":2' in answer


def test_a_long_computation_pauses_at_ticks_and_goes_on(make):
    instance = make()
    entry = instance.enter("start", encode_start("sum(range(3_000_000))", "s.py", {}, BEFORE_ANY_RUN), 60)
    pauses = 0
    while not entry.advance():
        pauses += 1
        assert entry.answer == ""
    assert pauses > 0
    assert '"completed":4499998500000' in str(entry.answer)
    assert instance.cpu_seconds > 0


def test_two_guests_take_turns_on_one_thread(make):
    script = encode_start("sum(range(2_000_000))", "s.py", {}, BEFORE_ANY_RUN)
    entries = [make().enter("start", script, 60) for _ in range(2)]
    waiting = list(entries)
    while waiting:
        waiting = [entry for entry in waiting if not entry.advance()]
    assert all('"completed":1999999000000' in str(entry.answer) for entry in entries)


def test_an_interrupted_guest_ends_at_the_next_tick(make):
    instance = make()
    entry = instance.enter("start", encode_start("while True: pass", "s.py", {}, BEFORE_ANY_RUN), 60)
    assert not entry.advance()
    instance.is_interrupted = True
    while not entry.advance():
        pass
    assert entry.answer == Stopped("wall_seconds", 30.0)


def test_a_deadline_that_has_passed_ends_the_guest(make):
    assert finish(make(), "while True: pass", seconds=0.05) == Stopped("wall_seconds", 30.0)


def test_output_survives_a_trap(make, printed):
    answer = finish(make(), "import os, sys\nprint('out')\nprint('err', file=sys.stderr)\nos.abort()")
    assert isinstance(answer, Raised)
    assert answer.type == "SandboxTrap"
    assert printed == [(1, "out\n"), (2, "err\n")]


def test_output_beyond_its_limit_is_cut_at_a_whole_character(make, printed):
    assert finish(make(output_bytes=5), "print('äöü')") == Stopped("output_bytes", 5)
    assert printed == [(1, "äö")]


def test_a_new_instance_does_not_see_what_one_before_it_wrote_into_memory(make):
    script = "b = bytearray(4 << 20)\nb'MARK' * 3 in bytes(b)"
    finish(make(), "x = [bytearray(b'MARK' * 100_000) for _ in range(50)]")
    assert '"completed":false' in str(finish(make(), script))


def test_an_image_without_an_export_says_so(make):
    with pytest.raises(ImageError, match="has no export 'nothing'"):
        make().enter("nothing", "", 1)
