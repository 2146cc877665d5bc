"""The component: what the host enters. Importing this module is what the image's snapshot is taken of."""

import asyncio
import builtins
import collections
import contextlib
import gc
import inspect
import sys
import traceback
import warnings

import wit_world

from . import (
    absent,
    blocks,
    entropy,
    failures,
    immortals,
    loop,
    output,
    packages,
    packing,
    practice,
    protocol,
    references,
    script,
    standard_library,
    stubs,
    time_zones,
)
from . import bridge as bridges

standard_library.load()
time_zones.load()
packages.load()
output.install(wit_world.write)
absent.install()
failures.install()

RECURSION_LIMIT = sys.getrecursionlimit()
COLLECT_AFTER = 10_000
"""New objects before the collector looks for cycles; most scripts end earlier."""

WARM_UP = protocol.encode(
    {
        "script": "import asyncio\nfrom tools import warm\nawait asyncio.sleep(0)\nprint('', end='')\n'value'",
        "filename": "script.py",
        "seed": 0,
        "manifest": {"warm": {"doc": "", "functions": {"up": practice.DESCRIBED}}},
        "kernel": False,
    }
)

RESERVE = 1024 * 1024
"""Bytes kept back for telling that memory has run out."""


class Kept:
    """What the scripts of one instance share: all but one of a kernel find it as the script before has left it."""

    def __init__(self, seed: int):
        entropy.seed(seed)
        sys.argv = [""]  # as of an interpreter without a file: what reads its own name finds one
        self.loop = loop.SansIOLoop(_report_unhandled)
        self.bridge = bridges.Bridge(self.loop)
        self.namespace = script.new_namespace()
        self.filenames = set()

    def reopen(self):
        self.loop.clear()
        self.bridge.open()


class Run:
    """One script from its start to its outcome."""

    def __init__(self, message: dict, kept: Kept | None = None):
        if kept is None:
            kept = Kept(message["seed"])
        else:
            kept.reopen()
        self.kept = kept
        self._is_kernel = message["kernel"]
        self._loop = kept.loop
        self._bridge = kept.bridge
        self._filename = message["filename"]
        self._script = None
        self._outcome = None
        kept.filenames.add(self._filename)
        stubs.install(message["manifest"], self._bridge)
        blocks.install(self._bridge)
        try:
            self._script = script.Script(message["script"], self._filename, kept.namespace)
        except BaseException as error:
            self._outcome = self._tell(error)
        else:
            self._task = self._loop.create_task(self._script.run(), name="script")

    def step(self, completions: list) -> str:
        """Runs until every coroutine waits, and says what for."""
        self._bridge.complete(completions)
        if self._outcome is None:
            error = self._advance()
            if self._task.done() or error is not None:
                self._outcome = self._end(error)
        calls, cancelled = self._bridge.take()
        timer = self._loop.next_timer()
        outcome = None
        if self._outcome is not None:
            # A script that has ended is told of when the host has all that it displayed.
            calls, timer = calls if self._bridge.is_owed() else [], None
            outcome = None if self._bridge.is_owed() else self._outcome
        elif timer is None and not self._bridge.waits():
            outcome = self._outcome = {"raised": self._stuck()}
        step = {"calls": [], "cancelled": cancelled, "timer": timer, "outcome": outcome}
        if timer is not None and not self._bridge.waits():
            step["line"] = self._script.line_of(self._task.get_coro())
        text, left_over = protocol.encode_batch(step, calls)
        self._bridge.put_back(left_over)
        return text

    def _advance(self):
        """Runs the loop; returns what went through it: `SystemExit` and the like end a script from any task."""
        try:
            self._loop.run_until_blocked()
        except BaseException as error:
            return error
        return None

    def _end(self, error):
        forgotten = collections.Counter(self._bridge.close())
        self._cancel_the_rest()
        if error is None:
            error = self._cancelled() if self._task.cancelled() else self._task.exception()
        if error is None:
            for place, count in forgotten.items():
                print(f"{self._filename}:{place[1]}: {_forgotten(place[0], count)}", file=sys.stderr)
            return self._complete(self._task.result())
        if failures.is_good_exit(error):
            return self._complete(None)
        notes = [f"line {line}: {_forgotten(function, count)}" for (function, line), count in forgotten.items()]
        with contextlib.suppress(BaseException):  # the attributes of an exception may be the script's own code
            notes += [stubs.import_hint(error), absent.import_hint(error)]
        failures.add_notes(error, notes)
        return self._tell(error)

    def _cancelled(self):
        error = self._task._make_cancelled_error()
        if not error.args:
            error.args = ("the script cancelled itself, or awaited a task that was cancelled",)
        return error

    def _complete(self, value):
        try:
            return {"completed": protocol.to_json(value, _unknown_value)}
        except BaseException as error:
            if type(error) is RecursionError:
                failures.add_notes(error, ["this is the script's value, nested too deep to be written as JSON"])
            return self._tell(error)

    def _tell(self, error):
        # Both are needed below, and a script may have changed them.
        builtins.__import__ = _import
        sys.setrecursionlimit(RECURSION_LIMIT)
        if issubclass(type(error), MemoryError):
            self._make_room(error)
        return {"raised": failures.describe(error, self.kept.filenames)}

    def _make_room(self, error):
        """Gives back what the script held: telling how it ended needs memory too."""
        global _reserve
        _reserve = None
        traceback.clear_frames(error.__traceback__)
        if not self._is_kernel:
            self.kept.namespace.clear()
        gc.collect()
        if type(error) is MemoryError and not error.args:
            error.args = ("the script needs more memory than its run may have: keep less of it at a time",)

    def _cancel_the_rest(self):
        """As `asyncio.run` does: tasks that outlive the script are cancelled and get to clean up."""
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._advance()

    def _stuck(self):
        line = self._script.line_of(self._task.get_coro())
        message = (
            f"the script waits at line {line} for something that can never happen: no call is open and no timer is set"
        )
        return {"type": "RuntimeError", "message": message, "traceback": f"RuntimeError: {message}\n"}


def _forgotten(function, count):
    times = f" ({count} times)" if count > 1 else ""
    return f"{function}(...) was never awaited{times}, so it was not called: write `await {function}(...)`"


def _unknown_value(value):
    """What a value that JSON can't carry is told as: like a notebook, by its `repr`."""
    if inspect.isawaitable(value):
        raise TypeError("the script's value is a call that was not awaited: write `await` before it")
    return repr(value)


def _report_unhandled(context):
    """A task failed and nobody looked: said on stderr, as asyncio does, without the loop's own frames."""
    error = context.get("exception")
    if error is not None and not isinstance(error, asyncio.CancelledError):
        print(f"{context['message']}: {type(error).__qualname__}: {failures.text_of(error)}", file=sys.stderr)


class WitWorld(wit_world.WitWorld):
    """The component's exports. None of them lets an exception through: it would be a trap."""

    def warm(self, _nothing: str) -> str:
        """Runs a trivial script as a real one is run, so that the first of these finds pages and caches in place."""
        global _run
        step = self.start(WARM_UP)
        _run = None
        return step

    def references(self, source: str) -> str:
        """Returns the tools a script names, or how it fails to parse."""
        try:
            return protocol.encode({"references": references.find(source, "script.py")})
        except BaseException as error:
            return protocol.encode({"raised": failures.describe(error, {"script.py"})})

    def start(self, message: str) -> str:
        """Begins a run; in a kernel, with what the run before has left."""
        global _run, _reserve
        try:
            if _reserve is None:
                _reserve = bytearray(RESERVE)
            decoded = protocol.decode(message)
            _run = Run(decoded, _run.kept if _run is not None and decoded["kernel"] else None)
            return _run.step([])
        except BaseException as error:
            return _last_resort(error)

    def resume(self, message: str) -> str:
        """Continues the run."""
        try:
            return _run.step(protocol.decode(message)["completions"])
        except BaseException as error:
            return _last_resort(error)


_STOPPED = '{"calls":[],"cancelled":[],"timer":null,"outcome":{"stopped":"memory_bytes"}}'
_RAISED = """{"calls":[],"cancelled":[],"timer":null,"outcome":{"raised":{"type":"RuntimeError","message":"the script \
changed or used up something that the interpreter needs, so how it ended can't be told","traceback":""}}}"""


def _last_resort(error):
    """Answers for a run that could not even tell how it ended, with a text that is ready made."""
    global _reserve
    _reserve = None
    return _STOPPED if isinstance(error, MemoryError) else _RAISED


def _refuse_asyncio_run(*_, **__):
    raise RuntimeError(
        "the script already runs in an event loop: write `await ...` instead, in functions that are `async def` and "
        "are awaited themselves"
    )


asyncio.run = asyncio.new_event_loop = _refuse_asyncio_run
asyncio.get_event_loop = asyncio.get_running_loop
warnings.simplefilter("default")
warnings.simplefilter("ignore", ResourceWarning)  # what is not closed is gone with its script
# The bridge says it itself, with the function's name.
warnings.filterwarnings("ignore", r"coroutine 'tools\..*' was never awaited", RuntimeWarning)
_import = builtins.__import__
output.install(lambda _number, _text: None)  # the host can't be called while the snapshot is taken
_run = _reserve = None
practice.practise(WitWorld())
output.install(wit_world.write)
entropy.quiet_snapshot()
_run = None
_reserve = bytearray(RESERVE)
# A collection visits, and so copies, every object that a script has touched: rarely, then, and late.
gc.set_threshold(COLLECT_AFTER)
gc.collect()
immortals.make_immortal()
gc.collect()
packing.fill_holes()
gc.freeze()
