"""Runs share nothing, and what a script can reach of the bridge gives it no more than the stubs do.

Attack and control in pairs: the script that tries, with its exact end, and the one that shows that the way is open to
those who may.
"""

from __future__ import annotations

import anyio
import pytest

from sandbox import Call, Completed, Completion, Limits, Raised, Returned, Stopped
from sandbox.limits import MIB
from tests.processes import resident_bytes

from .corpus import MANIFEST, Broker
from .test_hostile_scripts import told

pytestmark = pytest.mark.anyio

POLLUTE = {
    "builtins": ("import builtins\nbuiltins.len = lambda _: 99", "len('ab')", 2),
    "a module": ("import json\njson.dumps = None", "import json\njson.dumps(1)", "1"),
    "sys.modules": ("import sys\nsys.modules['left'] = sys", "import sys\n'left' in sys.modules", False),
    "the environment": ("import os\nos.environ['LEFT'] = '1'", "import os\nos.environ.get('LEFT')", None),
    "the event loop": (
        "import asyncio\nasyncio.get_running_loop().set_exception_handler(print)",
        "import asyncio\nasyncio.get_running_loop().get_exception_handler()",
        None,
    ),
    "the stubs": ("from tools import good\ngood.add = None", "from tools import good\nawait good.add(a=1, b=1)", 2),
    "the bridge": (
        "import sys\ntype(sys.modules['guest.main']._run._bridge).call = None",
        "from tools import good\nawait good.add(a=1, b=1)",
        2,
    ),
    "warnings": (
        "import warnings\nwarnings.filterwarnings('error')",
        "import warnings\nwarnings.warn('x')\n'on'",
        "on",
    ),
    "a decimal context": (
        "import decimal\ndecimal.getcontext().prec = 2",
        "import decimal\ndecimal.getcontext().prec",
        28,
    ),
    "a logging handler": (
        "import logging\nlogging.basicConfig()",
        "import logging\nlogging.getLogger().handlers",
        [],
    ),
    "the standard streams": ("import sys\nsys.stdout = None", "print('x')\n'printed'", "printed"),
    "an exit of the interpreter": ("import os\nos.abort()", "1", 1),
}


async def run(sandbox, script, **options):
    with anyio.fail_after(120):
        return await sandbox.run(script, answer=Broker("none").answer, manifest=MANIFEST, **options)


@pytest.mark.parametrize("what", POLLUTE)
async def test_what_a_run_changes_is_as_new_in_the_next(sandbox, what):
    attack, control, value = POLLUTE[what]
    before = (await run(sandbox, control)).outcome
    await run(sandbox, attack)
    after = await run(sandbox, control)
    assert before == after.outcome == Completed(value)


async def test_a_module_namespace_is_as_new_while_another_run_is_still_open(sandbox):
    begun = anyio.Event()
    release = anyio.Event()

    async def hold(_call: Call) -> Completion:
        begun.set()
        await release.wait()
        return Returned(None)

    async def first() -> None:
        script = "import json, tools\njson.left = 1\nawait tools.good.inject()\nprint(json.left)"
        outputs.append((await sandbox.run(script, answer=hold, manifest=MANIFEST)).stdout)

    outputs: list[str] = []
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            await begun.wait()
            assert (await run(sandbox, "import json\nhasattr(json, 'left')")).outcome == Completed(value=False)
            release.set()
    assert outputs == ["1\n"]


RAW = """
import sys
protocol, main = sys.modules["guest.protocol"], sys.modules["guest.main"]
def send(text):
    main.Run.step = lambda *_: text
    main._run.__class__ = type("Other", (main.Run,), {{"step": lambda *_: text}})
    main.protocol.encode_batch = lambda *_: (text, [])
send({text})
"""


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("''", "raised ProtocolError"),
        ("'[]'", "raised ProtocolError"),
        ("'{}'", "raised ProtocolError"),
        ("'[' * 50_000", "stopped depth"),
        ("'{\"calls\":' * 50_000", "stopped depth"),
        ("'\"' * 7_000_000", "stopped argument_bytes"),
        ("'x' * 7_000_000", "stopped argument_bytes"),
        ("'[0' + ',0' * 600_000 + ']'", "stopped values"),
        ('\'{"calls":[],"cancelled":[],"timer":1e999,"outcome":null}\'', "raised ProtocolError"),
        ('\'{"calls":[],"cancelled":[],"timer":\' + \'9\' * 400 + \',"outcome":null}\'', "raised ProtocolError"),
        (
            '\'{"calls":[{"id":-1,"function":"good.echo","arguments":{}}],"cancelled":[],"timer":null}\'',
            "raised ProtocolError",
        ),
        ("b'bytes'", "raised SandboxTrap"),
        ("5", "raised SandboxTrap"),
        ("None", "raised SandboxTrap"),
    ],
)
async def test_a_forged_message_ends_its_run_alone(sandbox, text, end):
    result = await run(sandbox, RAW.format(text=text))
    assert told(result.outcome) == end
    assert (await run(sandbox, "1 + 1")).outcome == Completed(2)


async def test_a_message_as_the_guest_writes_it_comes_through(sandbox):
    text = '\'{"calls":[],"cancelled":[],"timer":null,"outcome":{"completed":[1]}}\''
    assert (await run(sandbox, RAW.format(text=text))).outcome == Completed([1])


async def test_a_timer_in_the_past_that_never_ends_meets_the_limit_of_steps(sandbox):
    text = '\'{"calls":[],"cancelled":[],"timer":-1e300,"outcome":null}\''
    result = await run(sandbox, RAW.format(text=text), limits=Limits(steps=50))
    assert result.outcome == Stopped("steps", 50)


async def test_answers_to_calls_that_were_never_made_can_not_be_asked_for(sandbox):
    script = """
import sys, asyncio
bridge = sys.modules["guest.main"]._run._bridge
future = bridge._waiting[77] = bridge._loop.create_future()
await asyncio.wait_for(future, 0.05)
"""
    outcome = (await run(sandbox, script)).outcome
    assert isinstance(outcome, Raised)
    assert outcome.type == "TimeoutError"


@pytest.mark.parametrize(
    "script",
    [
        "'x' * (30 << 20)",
        "raise ValueError('x' * (30 << 20))",
        "print('x' * (30 << 20))",
        "from tools import good\nawait good.echo(text='x' * (40 << 20))",
        "[{} for _ in range(400_000)]",
        "[[[[]]]] * 300_000",
        "{str(n): n for n in range(400_000)}",
    ],
)
async def test_the_hosts_memory_stays_small_whatever_is_sent(sandbox, script):
    await run(sandbox, "1")
    before = resident_bytes()
    result = await run(sandbox, script, limits=Limits(memory_bytes=256 * MIB, output_bytes=MIB))
    assert told(result.outcome) in {"stopped value_bytes", "stopped argument_bytes", "stopped output_bytes"} | {
        "stopped values",
        "raised ValueError",
    }
    assert resident_bytes() - before < 64 * MIB
