"""A thousand generated scripts, each run twice: the same inputs at each step give the same steps, byte for byte."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox import Failed, Limits, Returned
from sandbox.host_messages import encode_completion, encode_resume, encode_start
from sandbox.instance import Instance
from sandbox.terms import Terms

HEAD = """
import asyncio, collections, datetime, gc, hashlib, json, os, random, secrets, sys, tempfile, time, uuid, weakref
from tools import ToolError, good
class Thing:
    def __init__(self, name): self.name = name
async def ask(text, pause=0.0):
    if pause: await asyncio.sleep(pause)
    try:
        return await good.echo(text=str(text))
    except ToolError as error:
        return f"{type(error).__name__}: {error}"
"""
BLOCKS = (
    "print({{str(n * {a}) for n in range({b} % 30)}}, frozenset('{a}abc'), {{n: -n for n in range({b} % 5)}})",
    "things = {{Thing(n) for n in range({a} % 20)}}\nprint([t.name for t in things], [t for t in list(things)[:2]])",
    "print(random.random(), random.sample(range(99), {a} % 9), random.Random().getrandbits({b} % 64 + 1))",
    "print(uuid.uuid4(), secrets.token_hex({a} % 9), os.urandom({b} % 9).hex(), next(tempfile._get_candidate_names()))",
    "print(time.time(), time.monotonic(), time.perf_counter_ns(), datetime.datetime.now(), datetime.date.today())",
    "time.sleep(0.001 * ({a} % 50))\nprint(time.monotonic(), file=sys.stderr)",
    "print(hash('{a}'), hash((1, '{b}')), id(object()) % 16, hash(Thing(1)) == hash(Thing(2)))",
    "print(await asyncio.gather(*[ask(n, 0.001 * (n * {a} % 7)) for n in range({b} % 6)]))",
    "for future in asyncio.as_completed([ask(n, 0.002 * (n % 2)) for n in range({a} % 5)]):\n    print(await future)",
    """try:
    async with asyncio.TaskGroup() as group:
        for n in range({a} % 4):
            group.create_task(ask(n))
        if {b} % 2:
            raise ValueError({a})
except* ValueError as error:
    print(error.exceptions, len(gc.get_objects()) > 0)""",
    """try:
    async with asyncio.timeout(0.001 * ({a} % 9)):
        print(await good.echo(text='late'))
except (TimeoutError, ToolError) as error:
    print(type(error).__name__)""",
    """queue = asyncio.Queue({a} % 3)
async def fill():
    for n in range(4):
        await queue.put((n, random.random()))
        print('put', n)
filling = asyncio.create_task(fill())
print([await queue.get() for _ in range(4)], await asyncio.to_thread(str, {b}))""",
    """done, pending = await asyncio.wait([asyncio.create_task(ask(n)) for n in range(1 + {a} % 4)],
                                   return_when=asyncio.FIRST_COMPLETED)
print(len(done), len(pending))
for task in pending:
    task.cancel()""",
    "cells = [weakref.ref(Thing(n)) for n in range({a} % 9)]\ngc.collect()\nprint(cells, sys.getsizeof(cells))",
    "print(hashlib.sha256(json.dumps(sorted(map(str, vars().keys()))).encode()).hexdigest(), dict.fromkeys('{b}'))",
    "asyncio.create_task(ask('left behind'))\nprint(collections.Counter(str({a} ** 50)).most_common(3))",
    "def fail(n):\n    return fail(n - 1) if n else 1 / 0\nif {a} % 5 == 0:\n    fail({b} % 9)",
    "if {a} % 11 == 0:\n    sys.exit({b} % 3)",
)
TAIL = "return [random.random(), time.time(), {str(n) for n in range(5)}]"
NUMBER = st.integers(0, 1_000)

a_script = st.lists(st.builds(str.format, st.sampled_from(BLOCKS), a=NUMBER, b=NUMBER), min_size=1, max_size=6).map(
    lambda blocks: "\n".join([HEAD, *blocks, TAIL])
)


@dataclass
class Recorded:
    """What went into each step, and everything that came out."""

    inputs: list[tuple[int, str]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


class Guest:
    """A guest that notes what comes out of it."""

    def __init__(self, image, manifest, script: str, seed: int) -> None:
        self.outputs: list[str] = []
        self.instance = Instance(image)
        terms = Terms(Limits(), seed, 1_700_000_000 * 10**9)
        self.instance.take_on(terms, lambda number, text: self.outputs.append(f"{number} {text}"))
        self.start = encode_start(script, "s.py", manifest, terms)

    def enter(self, export: str, message: str) -> str:
        entry = self.instance.enter(export, message, 60)
        while not entry.advance():
            pass
        assert isinstance(entry.answer, str), entry.answer
        self.outputs += [entry.answer, str(self.instance.clock.elapsed_ns)]
        return entry.answer


def record(guest: Guest, host: random.Random) -> Recorded:
    """Runs a script with a host that answers some calls at a time, in any order, well or badly, and takes its time."""
    recorded = Recorded(outputs=guest.outputs)
    open_calls: list[int] = []
    step: dict[str, Any] = json.loads(guest.enter("start", guest.start))
    while "outcome" not in step:
        open_calls += [call["id"] for call in step.get("calls", ())]
        open_calls = [call for call in open_calls if call not in step.get("cancelled", ())]
        host.shuffle(open_calls)
        count = host.randint(0 if "timer" in step else 1, len(open_calls)) if open_calls else 0
        answered, open_calls = open_calls[:count], open_calls[count:]
        answers = (Returned("x"), Returned({"text": [1, 2.5, None]}), Failed("ToolTimeoutError", "too late"))
        message = encode_resume([encode_completion(call, host.choice(answers), Limits()) for call in answered])
        now = guest.instance.clock.elapsed_ns + host.randint(0, 10**7)
        if not answered:
            now = max(now, int(step["timer"] * 1e9) + 1_000)
        recorded.inputs.append((now, message))
        guest.instance.clock.advance_to(now)
        step = json.loads(guest.enter("resume", message))
    return recorded


def replay(guest: Guest, inputs: list[tuple[int, str]]) -> list[str]:
    guest.enter("start", guest.start)
    for now, message in inputs:
        guest.instance.clock.advance_to(now)
        guest.enter("resume", message)
    return guest.outputs


CHEAP = settings(
    max_examples=1_000, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@CHEAP
@given(script=a_script, seed=st.integers(0, 2**64 - 1), host=st.integers(0, 2**32))
def test_the_same_inputs_give_the_same_steps(image, manifest, script, seed, host):
    first = Guest(image, manifest, script, seed)
    second = Guest(image, manifest, script, seed)
    try:
        recorded = record(first, random.Random(host))  # noqa: S311  # a finding must come again
        assert replay(second, recorded.inputs) == recorded.outputs
    finally:
        first.instance.close()
        second.instance.close()


@settings(CHEAP, max_examples=50)
@given(script=a_script, seed=st.integers(0, 2**63), host=st.integers(0, 2**32))
def test_two_seeds_draw_different_numbers(image, manifest, script, seed, host):
    drawing = script.replace(HEAD, f"{HEAD}print(random.random())\n")
    guests = [Guest(image, manifest, drawing, seed + more) for more in (0, 1)]
    try:
        outputs = [record(guest, random.Random(host)).outputs for guest in guests]  # noqa: S311  # as above
        assert outputs[0][0] != outputs[1][0]
    finally:
        for guest in guests:
            guest.instance.close()
