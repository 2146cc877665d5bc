"""A run taken again from its journal: from the whole, from each beginning of it, and parked."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

import pytest

from sandbox import Completed, Limits, NoJournal, Parked, Past, Returned, Stopped, Stopwatch

pytestmark = pytest.mark.anyio

SCRIPT = """
    import asyncio, random, time, uuid
    from tools import good
    print(random.random(), uuid.uuid4(), time.time(), {"a", "b", "c"})
    async def one(n):
        answer = await good.echo(text=str(n))
        print(n, answer, random.random(), time.monotonic())
        return answer
    first = asyncio.gather(*[one(n) for n in range(4)])
    await asyncio.sleep(0.003)
    try:
        await asyncio.wait_for(good.echo(text="slow"), 0.002)
    except TimeoutError:
        print("gave up")
    print(await first)
    for n in range(4, 7):
        await one(n)
    random.random()
"""

GIVEN_UP = 5
"""The call that it waits for no longer, maybe before it is made."""


def texts(printed):
    """What was printed, by stream; into how many pieces it comes depends on how long a step took."""
    return [
        (stream, "".join(piece.text for piece in pieces)) for stream, pieces in groupby(printed, attrgetter("stream"))
    ]


class Kept(NoJournal):
    """Keeps a run in memory."""

    def __init__(self):
        self.steps = []
        self.answers = {}
        self.asked = []
        self.returned = []
        self.printed = []
        self.outcome = None

    def stepped(self, entered, returned, printed):
        self.steps.append(entered)
        self.returned.append((returned, texts(printed)))

    def answered(self, call_id, completion):
        assert call_id not in self.answers
        self.answers[call_id] = completion

    def retraced(self, number, returned, printed):
        assert (returned, texts(printed)) == self.returned[number]

    def ended(self, outcome, printed):
        self.outcome = outcome
        self.printed = texts(printed)

    def cut(self, steps, *, forgets=()):
        """This journal as a process leaves it that dies after so many steps."""
        kept = Kept()
        kept.steps, kept.returned = self.steps[:steps], self.returned[:steps]
        seen = {call_id for step in kept.steps for call_id in step.completions}
        called = {call.id for step, _ in kept.returned for call in step.calls}
        kept.answers = {
            key: value for key, value in self.answers.items() if key in seen or (key in called and key not in forgets)
        }
        return kept

    def past(self, **more):
        seen = {call_id for step in self.steps for call_id in step.completions}
        open_answers = {key: value for key, value in self.answers.items() if key not in seen}
        return Past(tuple(self.steps), open_answers, **more)


async def answer(call):
    return Returned(call.arguments["text"] * 2)


CONDITIONS = {"seed": 7, "wall_ns": 10**18}


async def test_a_whole_run_taken_again_gives_the_same_without_any_call(run):
    journal = Kept()
    first = await run(SCRIPT, answer=answer, journal=journal, **CONDITIONS)
    assert journal.outcome == first.outcome == Completed(first.outcome.value)

    async def nothing(call):
        raise AssertionError(call)

    again = await run(SCRIPT, answer=nothing, journal=journal, past=journal.past(), **CONDITIONS)
    assert (again.outcome, again.stdout, again.usage.calls) == (first.outcome, first.stdout, first.usage.calls)


async def test_a_run_goes_on_from_every_step_without_repeating_what_was_answered(run):
    whole = Kept()
    await run(SCRIPT, answer=answer, journal=whole, **CONDITIONS)
    assert len(whole.steps) > 3
    for steps in range(len(whole.steps) + 1):
        journal = whole.cut(steps, forgets={2, 3})
        known = set(journal.answers)
        asked: list[int] = []

        async def note(call, asked=asked):
            asked.append(call.id)
            return await answer(call)

        began = journal.steps[-1].now_ns / 1e9 if steps else 0.0
        result = await run(
            SCRIPT, answer=note, journal=journal, past=journal.past(), stopwatch=Stopwatch(began), **CONDITIONS
        )
        assert isinstance(result.outcome, Completed), result
        assert not known & set(asked)
        assert known | {*asked, GIVEN_UP} == set(range(1, 9))
        assert "['00', '11', '22', '33']" in result.stdout
        assert result.stdout.count("\n6 66 ") == 1


async def test_what_was_seen_before_is_not_shown_again_but_is_in_the_result(run):
    journal = Kept()
    script = "from tools import good\nprint('one')\nawait good.echo(text='a')\nprint('two')"
    first = await run(script, answer=answer, journal=journal, **CONDITIONS)
    shown = []
    past = journal.cut(1).past(printed_characters=4)
    result = await run(script, answer=answer, past=past, on_output=lambda *piece: shown.append(piece), **CONDITIONS)
    assert "".join(text for _, text in shown) == "two\n"
    assert result.stdout == first.stdout == "one\ntwo\n"


async def test_a_past_that_is_not_gone_on_from_is_parked_where_it_ends(run):
    journal = Kept()
    await run(SCRIPT, answer=answer, journal=journal, **CONDITIONS)
    past = journal.cut(1, forgets={1, 2, 3, 4}).past(goes_on=False)
    result = await run(SCRIPT, answer=answer, past=past, **CONDITIONS)
    assert result.outcome == Parked((1, 2, 3, 4))


async def test_a_call_without_an_answer_parks_the_run_when_nothing_else_goes_on(run):
    script = """
        import asyncio
        from tools import good
        async def two():
            for n in range(2):
                print(await good.echo(text=str(n)))
        await asyncio.gather(two(), good.echo(text="later"), good.echo(text="later"))
        "went on"
    """

    async def not_yet(call):
        return None if call.arguments["text"] == "later" else await answer(call)

    journal = Kept()
    parked = await run(script, answer=not_yet, journal=journal, **CONDITIONS)
    assert (parked.outcome, parked.stdout) == (Parked((2, 3)), "00\n11\n")
    result = await run(script, answer=answer, journal=journal, past=journal.past(), **CONDITIONS)
    assert (result.outcome, result.stdout) == (Completed("went on"), "00\n11\n")


async def test_a_script_that_is_another_one_is_noticed(run):
    journal = Kept()
    await run(SCRIPT, answer=answer, journal=journal, **CONDITIONS)
    with pytest.raises(AssertionError):
        await run(SCRIPT.replace("range(4)", "range(3)"), journal=journal, past=journal.past(), **CONDITIONS)


async def test_what_was_printed_in_a_step_that_a_limit_ended_is_told(run):
    journal = Kept()
    await run("print('x')\nwhile True: pass", journal=journal, limits=Limits(cpu_seconds=0.2), **CONDITIONS)
    assert isinstance(journal.outcome, Stopped)
    told = [piece for _, printed in journal.returned for piece in printed] + journal.printed
    assert "".join(text for _, text in told) == "x\n"
