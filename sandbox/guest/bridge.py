"""Tool calls on their way out of the script and their answers on the way back in.

The bridge collects what the script asks for until the guest next returns to the host. It knows nothing of
namespaces or parameters (`stubs`), and nothing of JSON texts (`main`).
"""

import asyncio
import inspect
import sys

from . import tool_errors


class Bridge:
    """The calls of one run."""

    def __init__(self, loop):
        self._loop = loop
        self.open()

    def open(self) -> None:
        """Begin with nothing asked for; what a script before has left open is forgotten."""
        self._last_id = 0
        self._waiting = {}
        self._outgoing = {}
        self._cancelled = []
        self._posted = set()
        self._never_awaited = {}
        self._closed = False

    def call(self, function: str, arguments: dict):
        """Return the coroutine that makes this call once it is awaited."""
        caller = sys._getframe(2)
        call = {"id": 0, "function": function, "line": caller.f_lineno, "arguments": arguments}
        self._never_awaited[id(call)] = call, caller.f_code
        coroutine = self._perform(call)
        coroutine.__qualname__ = f"tools.{function}"
        return coroutine

    def post(self, function: str, arguments: dict) -> None:
        """Make a call whose answer nobody waits for; the script does not end before the host has it."""
        if self._closed:
            return
        call_id = self._next_id()
        self._posted.add(call_id)
        line = sys._getframe(3).f_lineno
        self._outgoing[call_id] = {"id": call_id, "function": function, "line": line, "arguments": arguments}

    async def _perform(self, call):
        if self._never_awaited.pop(id(call), (None,))[0] is not call:
            call["line"] = 0  # an earlier script of a kernel wrote it
        if self._closed:
            raise tool_errors.ToolError(f"{call['function']} was not called: the script has already ended")
        call_id = call["id"] = self._next_id()
        future = self._waiting[call_id] = asyncio.Future(loop=self._loop)
        self._outgoing[call_id] = call
        try:
            return await future
        finally:
            if self._waiting.get(call_id) is future:
                del self._waiting[call_id]
                self._withdraw(call_id)

    def _next_id(self):
        self._last_id += 1
        return self._last_id

    def _withdraw(self, call_id):
        """Drop a call that the script no longer waits for, or cancel it if it was handed over."""
        if self._outgoing.pop(call_id, None) is None:
            self._cancelled.append(call_id)

    def complete(self, completions: list) -> None:
        """Hand answers to the coroutines that wait for them."""
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
        calls, self._outgoing = list(self._outgoing.values()), {}
        cancelled, self._cancelled = self._cancelled, []
        return calls, cancelled

    def put_back(self, calls: list) -> None:
        """Take back calls that did not fit into the message; they go first next time."""
        self._outgoing = {call["id"]: call for call in calls}

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
            (call["function"], call["line"], "")
            for call_id, call in self._outgoing.items()
            if call_id not in self._posted
        ]

    def close(self) -> list:
        """Refuse further calls; return those that were written but never awaited.

        Each as (function, line, plain function of the script around it, "lambda" or "").
        """
        self._closed = True
        return [(call["function"], call["line"], _plain_function(code)) for call, code in self._never_awaited.values()]


def _plain_function(code):
    """Return the name of the function that code is of, or "lambda", if that cannot await; empty for any other code."""
    if code.co_name == "<lambda>":
        return "lambda"
    return "" if code.co_flags & inspect.CO_COROUTINE or not code.co_name.isidentifier() else code.co_name
