"""One script from its start to its outcome, and what the scripts of a kernel share.

Above: `main`, which the host enters. Below: the loop, the bridge, the script's code, and how its failure is told.
"""

import asyncio
import builtins
import collections
import collections.abc
import contextlib
import gc
import inspect
import sys
import traceback

from . import absent, blocks, culprits, entropy, failures, loop, protocol, script, stubs
from . import bridge as bridges

RECURSION_LIMIT = sys.getrecursionlimit()
RESERVE = 1024 * 1024
"""Bytes kept back for telling that memory has run out."""

_TOO_DEEP = "this is the script's value, nested too deep to be written as JSON: end with a part of it, or print that"
_NOT_AWAITED = (
    "the script's value is or holds a call that was not awaited: write `await` before it, or, around a list "
    "of calls, `await asyncio.gather(*...)`"
)

_import = builtins.__import__
_reserve = None


def keep_reserve() -> None:
    """Keep memory back, for as long as there is some."""
    global _reserve
    if _reserve is None:
        _reserve = bytearray(RESERVE)


def give_up_reserve() -> None:
    """Make room for telling how a script ended."""
    global _reserve
    _reserve = None


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

    def __init__(self, message: dict, rest: str, kept: Kept | None = None):
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
        stubs.install(message["manifest"], rest, self._bridge)
        blocks.install(self._bridge)
        try:
            self._script = script.Script(message["script"], self._filename, kept.namespace)
        except BaseException as error:
            self._outcome = self._tell(error)
        else:
            self._task = self._loop.create_task(self._script.run(), name="script")

    def step(self, completions: list, characters: int = 0) -> str:
        """Run until every coroutine waits, and say what for, given answers of so many characters."""
        self._bridge.complete(completions, characters)
        timer = None
        if self._outcome is None:
            error = None
            try:
                timer = self._loop.run_until_blocked()
            except BaseException as raised:  # `SystemExit` and the like end a script from any task
                error = raised
            if error is not None or self._task.done():
                self._outcome = self._end(error)
        calls, cancelled = self._bridge.take()
        outcome = None
        if self._outcome is not None:
            # A script that has ended is told of when the host has all that it displayed.
            calls, timer = calls if self._bridge.is_owed() else [], None
            outcome = None if self._bridge.is_owed() else self._outcome
        elif timer is None and not calls and not self._bridge.waits():
            outcome = self._outcome = {"raised": self._stuck()}
        step = {} if outcome is None else {"outcome": outcome}
        if cancelled:
            step["cancelled"] = cancelled
        if timer is not None:
            step["timer"] = timer
            if not self._bridge.waits():
                step["line"] = self._script.line_of(self._task.get_coro())
        text, left_over = protocol.encode_batch(step, calls)
        if left_over:
            self._bridge.put_back(left_over)
        return text

    def _end(self, error):
        forgotten, unsent = self._bridge.close(), self._bridge.unsent()
        left = self._cancel_the_rest()
        if error is None:
            error = self._cancelled() if self._task.cancelled() else self._task.exception()
        if error is None:
            forgotten += unsent  # of tasks that the script has not waited for
            told = {place[1] for place in forgotten}
            places = [place for place in left if place is not None and place[1] not in told]
            for line, note in [*_notes_on(forgotten, bool(left)), *_notes_on_tasks(places)]:
                print(f"{self._filename}:{line}: {note}", file=sys.stderr)
            value = self._task.result()
            if value is None and not self._is_kernel and not self._bridge.was_used():
                with contextlib.suppress(Exception):  # what it defines may be the script's own code to look at
                    for note in self._script.never_used():
                        print(note, file=sys.stderr)
            return self._complete(value)
        if failures.is_good_exit(error):
            return self._complete(None)
        notes = [f"line {line}: {note}" for line, note in _notes_on(forgotten, bool(left))]
        with contextlib.suppress(BaseException):  # the attributes of an exception may be the script's own code
            notes += [stubs.import_hint(error), absent.import_hint(error)]
        failures.add_notes(error, notes)
        with contextlib.suppress(BaseException):  # the same
            culprits.explain(failures.first_leaves(error), self.kept.filenames, self._bridge.answered)
        return self._tell(error)

    def _cancelled(self):
        error = self._task._make_cancelled_error()
        if not error.args:
            error.args = ("the script cancelled itself, or awaited a task that was cancelled",)
        return error

    def _complete(self, value):
        if protocol.are_plain((value,)):
            return {"completed": value}
        try:
            return {"completed": protocol.to_json(value, _unknown_value)}
        except protocol.NotJsonError as error:
            return self._tell(ValueError(str(error)))
        except BaseException as error:
            if type(error) is RecursionError:
                failures.add_notes(error, [_TOO_DEEP])
            return self._tell(error)

    def _tell(self, error):
        # Both are needed below, and a script may have changed them.
        builtins.__import__ = _import
        sys.setrecursionlimit(RECURSION_LIMIT)
        if issubclass(type(error), MemoryError):
            self._make_room(error)
        return {"raised": failures.describe(error, self.kept.filenames)}

    def _make_room(self, error):
        """Give back what the script held: telling how it ended needs memory too."""
        give_up_reserve()
        traceback.clear_frames(error.__traceback__)
        if not self._is_kernel:
            self.kept.namespace.clear()
        gc.collect()
        if type(error) is MemoryError and not error.args:
            error.args = ("the script needs more memory than its run may have: keep less of it at a time",)

    def _cancel_the_rest(self):
        """Cancel tasks that outlive the script and let them clean up, as `asyncio.run` does; return where each was."""
        tasks = asyncio.all_tasks(self._loop)
        places = [self._place_of(task) for task in tasks]
        for task in tasks:
            task.cancel()
        with contextlib.suppress(BaseException):
            self._loop.run_until_blocked()
        return places

    def _place_of(self, task):
        """Return which function of the script a task is in, and at which line; None if it was told to end already."""
        with contextlib.suppress(Exception):  # its class may be the script's own
            coroutine = task.get_coro()
            if not task.cancelling() and coroutine.cr_code.co_filename == self._filename:
                return coroutine.cr_code.co_name, self._script.line_of(coroutine)
        return None

    def _stuck(self):
        line = self._script.line_of(self._task.get_coro())
        message = (
            f"the script waits at line {line} for something that can never happen: no call is open and no timer is set"
        )
        return {"type": "RuntimeError", "message": message, "traceback": f"RuntimeError: {message}\n"}


def _notes_on(forgotten, has_tasks):
    """Return the lines of calls that were not awaited, and what to write; calls of one place have one note."""
    if not forgotten:
        return []
    return [(place[1], _note_on(place, count, has_tasks)) for place, count in collections.Counter(forgotten).items()]


def _note_on(place, count, has_tasks):
    function, _, around = place
    times = f" ({count} times)" if count > 1 else ""
    said = f"{function}(...) was never awaited{times}, so it was not called"
    if around == "lambda":
        return (
            f"{said}: a lambda cannot `await`. Write `[await {function}(...) for ... in ...]` in its place, or "
            "`await asyncio.gather(*...)` around what it returns"
        )
    if around:
        return f"{said}: make {around} an `async def` that awaits it, and write `await {around}(...)`"
    or_task = ", or `await` the task or gather that it was given to" if has_tasks else ""
    return f"{said}: write `await {function}(...)`{or_task}"


def _notes_on_tasks(places):
    """Return the lines at which tasks were when the script ended, and what to write; each place has one note."""
    if not places:
        return []
    notes = []
    for (function, line), count in sorted(collections.Counter(places).items(), key=lambda one: one[0][1]):
        times = f" ({count} times)" if count > 1 else ""
        said = f"{function}(...) was cancelled here{times}, as the script ended without it: `await` its task"
        notes.append((line, said))
    return notes


def _unknown_value(value):
    """Return what a value that JSON cannot carry is told as: like a notebook, by its `repr`."""
    if inspect.isawaitable(value):
        raise TypeError(_NOT_AWAITED)
    if isinstance(value, collections.abc.AsyncIterator):
        raise TypeError("the script's value is an asynchronous generator: make a list of it, `[... async for ...]`")
    return repr(value)


def _report_unhandled(context):
    """Say on stderr that a task failed and nobody looked, as asyncio does, without the loop's own frames."""
    error = context.get("exception")
    if error is not None and not isinstance(error, asyncio.CancelledError):
        print(f"{context['message']}: {type(error).__qualname__}: {failures.text_of(error)}", file=sys.stderr)
