"""Spans of runs, and of the calls in them, for whoever traces this process with OpenTelemetry.

Above: execution.py and tool_calls.py; the dispatchers of upstreams ask whether there is a span. Below: OpenTelemetry's
API, which does nothing until a program sets a provider of tracers. Names follow its conventions for tools of generative
models. A span holds names, ids and outcomes: no arguments, results or output, and no text of a server.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

from opentelemetry import trace

from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from contextlib import AbstractContextManager

    from broker.calls.attempts import CallRecord
    from broker.runs.envelope import ExecutionResult

P = ParamSpec("P")

_TRACER = trace.get_tracer("codemode-broker")
_NAME_CHARACTERS = 100


def is_traced() -> bool:
    """Tell whether this process has a provider of tracers."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def is_in_span() -> bool:
    """Tell whether this is done within a span, as every call is in a process that is traced."""
    return trace.get_current_span() is not trace.INVALID_SPAN


def traced_run(perform: Callable[P, Awaitable[ExecutionResult]]) -> Callable[P, Awaitable[ExecutionResult]]:
    """Put each run that a function performs in a span."""

    @wraps(perform)
    async def traced(*args: P.args, **kwargs: P.kwargs) -> ExecutionResult:
        if not is_traced():
            return await perform(*args, **kwargs)
        with _span("execute_code") as span:
            try:
                result = await perform(*args, **kwargs)
            except BaseException as error:
                _fail(span, type(error).__name__)
                raise
            span.set_attribute("codemode.run.id", result.run_id)
            span.set_attribute("codemode.run.outcome", result.outcome)
            span.set_attribute("codemode.run.calls", len(result.calls))
            if result.error is not None:
                _fail(span, one_line(result.error.type, _NAME_CHARACTERS))
            elif result.stopped is not None:
                _fail(span, result.stopped.limit)
            return result

    return traced


@contextmanager
def call_span(record: CallRecord, *, exists: bool) -> Iterator[None]:
    """Put a call in a span that says at its end what became of the call.

    Only a tool that `exists` is in the span's name: another is the script's own word, and there may be any number.
    """
    name = one_line(f"{record.server}.{record.tool}", _NAME_CHARACTERS)
    with _span(f"execute_tool {name}" if exists else "execute_tool") as span:
        span.set_attribute("gen_ai.operation.name", "execute_tool")
        span.set_attribute("gen_ai.tool.name", name)
        try:
            yield
        finally:
            span.set_attribute("codemode.call.decision", record.decision)
            span.set_attribute("codemode.call.status", record.status)
            if record.status not in {"ok", "waiting"}:
                _fail(span, record.status)


def _span(name: str) -> AbstractContextManager[trace.Span]:
    """Begin a span that takes no text of an exception by itself."""
    return _TRACER.start_as_current_span(name, record_exception=False, set_status_on_exception=False)


def _fail(span: trace.Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(trace.StatusCode.ERROR)
