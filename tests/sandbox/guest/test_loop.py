"""asyncio on the guest's own event loop."""

# ruff: noqa: E501  # one case a line

from __future__ import annotations

import pytest

from sandbox import Completed

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("await asyncio.sleep(0)\nasyncio.get_running_loop().is_running()", True),
        ("lock = asyncio.Lock()\nasync with lock:\n    x = lock.locked()\nx", True),
        ("q = asyncio.Queue(1)\nt = asyncio.create_task(q.put(5))\nawait q.get()", 5),
        ("e = asyncio.Event()\nasyncio.get_running_loop().call_later(0.001, e.set)\nawait e.wait()", True),
        ("s = asyncio.Semaphore(1)\nasync with s:\n    x = s.locked()\nx", True),
        ("async with asyncio.timeout(5):\n    x = 1\nx", 1),
        ("try:\n    async with asyncio.timeout(0.001):\n        await asyncio.sleep(1)\nexcept TimeoutError:\n    x = 'late'\nx", "late"),
        ("async with asyncio.TaskGroup() as g:\n    a = g.create_task(asyncio.sleep(0.001, 1))\na.result()", 1),
        ("d, p = await asyncio.wait([asyncio.create_task(asyncio.sleep(n, n)) for n in (0.001, 9)], return_when=asyncio.FIRST_COMPLETED)\n[len(d), len(p)]", [1, 1]),
        ("[await c for c in asyncio.as_completed([asyncio.sleep(0.002, 'b'), asyncio.sleep(0, 'a')])]", ["a", "b"]),
        ("await asyncio.shield(asyncio.sleep(0, 3))", 3),
        ("await asyncio.get_running_loop().run_in_executor(None, pow, 2, 5)", 32),
        ("import contextvars\nv = contextvars.ContextVar('v', default=0)\nasync def f():\n    v.set(1)\nawait asyncio.create_task(f())\nv.get()", 0),
        ("async def g():\n    try:\n        yield 1\n    finally:\n        await asyncio.sleep(0)\nasync for x in g():\n    break\nx", 1),
        ("f = asyncio.get_running_loop().create_future()\nf.set_exception(KeyError('k'))\ntry:\n    await f\nexcept KeyError as e:\n    x = str(e)\nx", "'k'"),
        ("asyncio.current_task().get_name()", "script"),
        ("h = asyncio.get_running_loop().call_later(0.001, print, 'never')\nh.cancel()\nawait asyncio.sleep(0.002)\nh.cancelled()", True),
        ("h = asyncio.get_running_loop().call_soon(print, 'never')\nh.cancel()\nawait asyncio.sleep(0)\nh.cancelled()", True),
        ("import contextvars\nv = contextvars.ContextVar('v', default=0)\nc = contextvars.copy_context()\nh = asyncio.get_running_loop().call_soon(v.set, 1, context=c)\nawait asyncio.sleep(0)\n[v.get(), c[v], h.get_context() is c]", [0, 1, True]),
        ("l = asyncio.get_running_loop()\nt = l.call_later(0, print, 'never')\nl.call_later(0, t.cancel)\nl.call_soon(t.cancel)\nawait asyncio.sleep(0.001)\nt.cancelled()", True),
        ("r = asyncio.Runner\nawait asyncio.gather(*[asyncio.sleep(0, n) for n in range(2000)])\n'many'", "many"),
        ("async def f():\n    raise ValueError('x')\n[str(e) for e in await asyncio.gather(f(), f(), return_exceptions=True)]", ["x", "x"]),
        ("b = asyncio.Barrier(2)\nawait asyncio.gather(b.wait(), b.wait())\n'met'", "met"),
    ],
)  # fmt: skip
async def test_asyncio_works_unchanged(run, script, value):
    result = await run(f"import asyncio\n{script}")
    assert result.outcome == Completed(value)
    assert result.stdout == ""


async def test_a_callback_that_fails_is_told_of(run):
    script = """
        import asyncio
        asyncio.get_running_loop().call_soon(int, "no number")
        await asyncio.sleep(0)
        "end"
    """
    result = await run(script)
    assert result.outcome == Completed("end")
    assert result.stderr.startswith("Exception in callback <class 'int'>: ValueError: invalid literal")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("class E(Exception):\n    def __str__(self): 1 / 0\ndef f(): raise E", "E: <no text: ZeroDivisionError>\n"),
        ("class C:\n    def __repr__(self): 1 / 0\n    def __call__(self): int('x')\nf = C()", "callback <no text: "),
        ("def f(): raise ValueError('x' * 10**6)", "characters left out]"),
        ("loop.set_exception_handler(lambda *_: 1 / 0)\nf = None", "in exception handler: ZeroDivisionError: division"),
    ],
)
async def test_a_callback_whose_failure_can_hardly_be_told_ends_no_script(run, script, told):
    script = (
        f"import asyncio\nloop = asyncio.get_running_loop()\n{script}\nloop.call_soon(f)\nawait asyncio.sleep(0)\n'end'"
    )
    result = await run(script)
    assert result.outcome == Completed("end")
    assert told in result.stderr
    assert len(result.stderr) < 10_000


@pytest.mark.parametrize(
    "wait", ["asyncio.sleep(float('inf'))", "asyncio.wait_for(asyncio.Event().wait(), float('inf'))"]
)
async def test_a_wait_for_ever_is_told_as_one(raised, wait):
    outcome = await raised(f"import asyncio\nawait {wait}")
    assert outcome.message.startswith("the script waits at line 2 for something that can never happen")


async def test_an_infinite_timeout_around_a_call_is_none(run):
    script = "import asyncio\nfrom tools import good\nawait asyncio.wait_for(good.echo(text='x'), float('inf'))"
    assert (await run(script)).outcome == Completed("x")


@pytest.mark.parametrize(("when", "kind"), [("float('nan')", "ValueError"), ("'soon'", "TypeError")])
async def test_a_timer_at_no_time_is_refused_at_its_line(raised, when, kind):
    outcome = await raised(f"import asyncio\nasyncio.get_running_loop().call_at({when}, print)")
    assert outcome.type == kind
    assert "line 2" in outcome.traceback


async def test_tasks_left_over_are_cancelled_and_clean_up(run):
    script = """
        import asyncio
        async def forever():
            try:
                await asyncio.sleep(1e6)
            finally:
                print("cleaned up")
        task = asyncio.create_task(forever())
        await asyncio.sleep(0)
        "end"
    """
    result = await run(script)
    assert result.outcome == Completed("end")
    assert result.stdout == "cleaned up\n"
