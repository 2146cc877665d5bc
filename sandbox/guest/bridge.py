"""Tool calls on their way out of the script and their answers on the way back in.

The bridge collects what the script asks for until the guest next returns to the host. It knows nothing of
namespaces or parameters (`stubs`), and nothing of JSON texts (`protocol`). A call is a list of its id, function, line
and arguments; its id is 0 until it is awaited.
"""

import asyncio
import inspect
import sys
import types

from . import tool_errors

MAX_KEPT = 50_000
"""Characters of the answers of which the last one is kept: it is not to take memory from the script."""


class Bridge:
    """The calls of one run.

    Attributes:
        answered: The last call that the script got its answer to, and the value; None if that was large.
    """

    def __init__(self, loop):
        self._loop = loop
        self._made = []
        self.open()

    def open(self) -> None:
        """Begin with nothing asked for; what a script before has left open is forgotten."""
        self._last_id = 0
        self._waiting = {}
        self._outgoing = {}
        self._cancelled = []
        self._posted = set()
        for call, _ in self._made:
            call[2] = 0  # an earlier script of a kernel wrote it
        self._made = []
        self._most_made = 0
        self._closed = False
        self._keeps = False
        self.answered = None

    def caller(self, function: str):
        """Return what takes arguments and returns the coroutine that makes the call once it is awaited.

        It must be called by what the script calls.
        """
        # A function of its own for each: coroutines bear its name.
        perform = types.FunctionType(_perform.__code__, _perform.__globals__, function.rpartition(".")[2])
        perform.__qualname__ = f"tools.{function}"

        def call(arguments):
            frame = _in_script(sys._getframe(2))
            made = [0, function, frame.f_lineno or 0, arguments]
            self._made.append((made, frame.f_code))
            return perform(self, made)

        return call

    def post(self, function: str, arguments: dict) -> None:
        """Make a call whose answer nobody waits for; the script does not end before the host has it."""
        if self._closed:
            return
        self._last_id += 1
        self._posted.add(self._last_id)
        line = _in_script(sys._getframe(3)).f_lineno or 0
        self._outgoing[self._last_id] = [self._last_id, function, line, arguments]

    def _withdraw(self, call_id):
        """Drop a call that the script no longer waits for, or cancel it if it was handed over."""
        if self._outgoing.pop(call_id, None) is None:
            self._cancelled.append(call_id)

    def complete(self, completions: list, characters: int) -> None:
        """Hand answers of so many characters to the coroutines that wait for them."""
        self._keeps = characters <= MAX_KEPT
        for completion in completions:
            future = self._waiting.pop(completion["id"], None)
            if future is None:
                self._posted.discard(completion["id"])
                continue
            if future.done():
                continue
            if "error" in completion:
                future.set_exception(tool_errors.from_completion(completion["error"]))
            else:
                future.set_result(completion["value"])

    def take(self) -> tuple[list, list]:
        """Return the calls made and the calls withdrawn since the last time."""
        calls, cancelled = [], []
        if self._outgoing:
            calls, self._outgoing = [*self._outgoing.values()], {}
        if self._cancelled:
            cancelled, self._cancelled = self._cancelled, []
        if len(self._made) > self._most_made:
            # As many again may be made before: to look at them is not to take longer than to make them.
            self._made = [made for made in self._made if not made[0][0]]
            self._most_made = 2 * len(self._made)
        return calls, cancelled

    def put_back(self, calls: list) -> None:
        """Take back calls that did not fit into the message; they go first next time."""
        self._outgoing = {call[0]: call for call in calls}

    def waits(self) -> bool:
        """Tell whether the host still owes an answer."""
        return bool(self._waiting or self._posted)

    def was_used(self) -> bool:
        """Tell whether the script has called anything."""
        return self._last_id > 0

    def is_owed(self) -> bool:
        """Tell whether the host has yet to take what was posted."""
        return bool(self._posted)

    def unsent(self) -> list:
        """Return every call that a task has made and that the host has not been told of, as `close` does."""
        return [
            (function, line, "")
            for call_id, function, line, _ in self._outgoing.values()
            if call_id not in self._posted
        ]

    def close(self) -> list:
        """Refuse further calls; return those that were written but never awaited.

        Each as (function, line, plain function of the script around it, "lambda" or "").
        """
        self._closed = True
        return [
            (function, line, _plain_function(code)) for (call_id, function, line, _), code in self._made if not call_id
        ]


async def _perform(bridge, call):
    if bridge._closed:
        raise tool_errors.ToolError(f"{call[1]} was not called: the script has already ended")
    made = bridge._made
    if made and made[-1][0] is call:
        made.pop()  # as nearly all are: awaited where they are written
    bridge._last_id = call_id = call[0] = bridge._last_id + 1
    future = bridge._waiting[call_id] = asyncio.Future(loop=bridge._loop)
    bridge._outgoing[call_id] = call
    try:
        value = await future
    except BaseException:
        if bridge._waiting.get(call_id) is future:
            del bridge._waiting[call_id]
            bridge._withdraw(call_id)
        raise
    bridge.answered = (call, value) if bridge._keeps else None
    return value


def _in_script(frame):
    """Return the script's own frame that a call comes from, behind those of libraries that make it for the script."""
    own = frame
    while own is not None and own.f_globals.get("__name__") != "__main__":
        own = own.f_back
    return own or frame


def _plain_function(code):
    """Return the name of the function that code is of, or "lambda", if that cannot await; empty for any other code."""
    if code.co_name == "<lambda>":
        return "lambda"
    return "" if code.co_flags & inspect.CO_COROUTINE or not code.co_name.isidentifier() else code.co_name
