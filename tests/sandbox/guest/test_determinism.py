"""A run is a function of script, stubs, seed, clock and answers."""

from __future__ import annotations

import time

import pytest

from sandbox import Completed, Limits
from sandbox.engine import engine
from sandbox.host_messages import encode_completion, encode_resume, encode_start
from sandbox.instance import Instance
from sandbox.outcome import Returned
from sandbox.terms import Terms

pytestmark = pytest.mark.anyio

DRAWS = """
import hashlib, os, random, secrets, tempfile, time, uuid, datetime, asyncio
from tools import good
print(random.random(), random.Random().random(), random.SystemRandom().random())
print(os.urandom(8).hex(), len(os.urandom(200_000)), hashlib.sha256(os.urandom(200_000)).hexdigest())
print(secrets.token_hex(8), uuid.uuid4(), next(tempfile._get_candidate_names()))
print(hash("text"), {"b", "a", "c"}, id(object()) > 0)
print(time.time(), time.monotonic(), time.perf_counter(), time.process_time(), datetime.datetime.now())
time.sleep(0.25)
async def one(n):
    await asyncio.sleep(0.001 * (n % 3))
    print(n, await good.echo(text=str(random.random())), time.monotonic())
await asyncio.gather(*[one(n) for n in range(10)])
random.choices("abc", k=5)
"""


def replay(image, manifest, *, seed: int, wall_ns: int) -> list[str]:
    """Everything that comes out of a guest whose host always answers at the same times of the run's clock."""
    out: list[str] = []
    instance = Instance(image)
    terms = Terms(Limits(), seed, wall_ns)
    instance.take_on(terms, lambda number, text: out.append(f"{number} {text}"))
    message, export = encode_start(DRAWS, "s.py", manifest, terms), "start"
    try:
        for step in range(1, 100):
            entry = instance.enter(export, message, 60)
            while not entry.advance():
                pass
            assert isinstance(entry.answer, str)
            out.append(entry.answer)
            if '"outcome":' in entry.answer:
                break
            count = entry.answer.count('"function"')
            done = [encode_completion(call, Returned("x"), Limits()) for call in range(1, 11)] if count else []
            instance.clock.advance_to(10**9 + step * 10**7)
            message, export = encode_resume(done), "resume"
    finally:
        instance.close()
    return out


def test_the_same_seed_clock_and_answers_give_the_same_bytes(image, manifest):
    first = replay(image, manifest, seed=5, wall_ns=10**18)
    assert first == replay(image, manifest, seed=5, wall_ns=10**18)
    assert "completed" in first[-1]


def test_another_seed_draws_other_numbers_everywhere(image, manifest):
    one, other = (
        [word for text in replay(image, manifest, seed=seed, wall_ns=10**18)[:3] for word in text[2:].split()]
        for seed in (5, 6)
    )
    assert [left for left, right in zip(one, other, strict=True) if left == right] == ["200000"]


async def test_random_numbers_differ_from_run_to_run_and_repeat_with_a_seed(run):
    imports = "import random, secrets, os, uuid\n"
    script = f"{imports}[random.random(), secrets.token_hex(4), os.urandom(4).hex(), str(uuid.uuid4())]"
    seeded = [(await run(script, seed=seed)).outcome for seed in (1, 1, 2)]
    free = [(await run(script)).outcome for _ in range(2)]
    assert seeded[0] == seeded[1]
    values = [outcome.value for outcome in (seeded[0], seeded[2], *free)]
    for index in range(4):
        assert len({value[index] for value in values}) == 4


@pytest.mark.parametrize(
    "first",
    [
        "random.random()",
        "random.choice([1, 2, 3])",
        "random._inst.random()",
        "getattr(random, 'rand' + 'int')(1, 9)",
        "dict(inspect.getmembers(random))['random']()",
        "statistics.NormalDist().samples(1)",
        "exec('from random import *; shuffle([1, 2])', {})",
    ],
)
async def test_whatever_asks_for_a_random_number_first_it_is_of_the_runs_seed(run, first):
    script = f"import inspect, random, statistics\n{first}\nrandom.random()"
    one, again, other = [(await run(script, seed=seed)).outcome.value for seed in (1, 1, 2)]
    assert one == again != other


async def test_random_has_all_its_names_before_anything_is_drawn(run):
    script = """
        import random
        unseen = sorted(set(random.__all__) - set(dir(random)))
        try:
            random.rand
        except AttributeError as error:
            return unseen, str(error), random.getstate()[0], callable(random.seed)
    """
    said = "module 'random' has no attribute 'rand'"
    assert (await run(script)).outcome == Completed([[], said, 3, True])


async def test_the_seed_of_random_is_the_method_that_python_has_there(run):
    script = """
        import inspect
        from random import seed
        import random
        return str(inspect.signature(seed)), seed.__self__ is random._inst, seed == random.seed
    """
    assert (await run(script)).outcome == Completed(["(a=None, version=2)", True, True])


async def test_what_a_script_puts_in_the_place_of_a_function_of_random_stays_there(run):
    script = """
        import random
        from random import seed
        random.choice = max
        seed(1)
        drawn = random.random()
        del random.random
        return random.choice([1, 5, 2]), round(drawn, 4), hasattr(random, "random")
    """
    assert (await run(script)).outcome == Completed([5, 0.1344, False])


async def test_nothing_but_random_draws_from_its_generator(run):
    script = """
        import random, sys
        generator, holders = random._inst, []
        for name, module in list(sys.modules.items()):
            for attribute, value in list(vars(module).items()):
                if value is generator or getattr(value, "__self__", None) is generator:
                    holders.append(name)
        return sorted({*holders} - {"__main__"})
    """
    assert (await run(script)).outcome == Completed(["random"])


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65_536, 65_537, 1_000_000])
async def test_urandom_gives_the_bytes_that_were_asked_for(run, size):
    assert (await run(f"import os\nlen(os.urandom({size}))")).outcome == Completed(size)


async def test_the_wall_clock_is_the_hosts_and_a_loop_that_waits_on_it_ends(run):
    script = "import time\nbegan = time.time()\nend = began + 0.01\nwhile time.time() < end: pass\nbegan"
    before = time.time()
    outcome = (await run(script)).outcome
    assert before - 1 < outcome.value < time.time() + 1


def test_the_engine_is_one_for_the_process():
    assert engine() is engine()
