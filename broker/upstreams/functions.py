"""Plain Python functions as the tools of a server in this process.

Above: upstreams.py. Below: the SDK's `MCPServer`, which reads signatures and docstrings. Functions of the embedding
program run in its process, with all it may do; scripts reach them as they reach every other tool.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from inspect import isawaitable, signature
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import anyio
import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver import Audio, Image
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata, StrictJsonSchema, _convert_to_content
from mcp.types import CallToolResult, ContentBlock, InputRequiredResult
from pydantic import BaseModel, PrivateAttr, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python

from broker.calls.tool_results import NULL_KEY
from sandbox.threads import waker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


MAX_THREADS = 40
"""For the functions of a server: those that never return take none of the threads that all else runs in."""


def functions_server(name: str, functions: Iterable[Callable[..., Any]]) -> MCPServer:
    """Return a server whose tools are these functions, under their own names.

    Parameters and results need annotations that JSON can carry; the docstring is the description. What a function
    raises reaches a script as `ToolError` without the message, unless it is the SDK's `ToolError`.

    Raises:
        TypeError: A function's signature cannot be told to a script.
    """
    # The SDK's server would write logs of its own to stderr, unless somebody else takes them.
    root, nobody = logging.getLogger(), logging.NullHandler()
    root.addHandler(nobody)
    try:
        server = MCPServer(name)
    finally:
        root.removeHandler(nobody)
    threads = _Threads()
    for function in functions:
        try:
            _add(server, function, threads)
        except Exception as error:  # noqa: BLE001  # the SDK and pydantic raise many kinds, also of their own mistakes
            reason = str(error).partition("\n")[0].partition(". Set `")[0] or type(error).__name__
            reason = f"{reason}: {error.__cause__}" if isinstance(error.__cause__, NameError) else reason
            raise TypeError(f"servers[{name!r}]: {function.__name__} cannot be a tool: {reason}") from None
    return server


class _Threads:
    """The threads of one server's functions: nothing can stop one, which is taken until its function returns.

    A limiter that anyio is given does not count a thread on asyncio whose caller was cancelled.
    """

    def __init__(self) -> None:
        self._taken = anyio.CapacityLimiter(MAX_THREADS)
        self._any = anyio.CapacityLimiter(math.inf)

    async def run(self, function: Callable[[], Any]) -> Any:
        """Return what a function returns. A caller that is cancelled does not wait for it.

        A coroutine is awaited, as decorators return one that do not know their function for an `async def`.
        """
        call = object()
        await self._taken.acquire_on_behalf_of(call)
        give_back = partial(self._taken.release_on_behalf_of, call)
        give_back_from_thread = waker(give_back)
        # Taken by the thread when it begins, or else by a caller that was cancelled before: who takes it gives back.
        first = iter([call])

        def work() -> tuple[Any]:
            if next(first, None) is None:
                return (None,)
            try:
                return (function(),)  # trio takes no bare coroutine from a thread
            finally:
                with suppress(RuntimeError):  # the event loop has ended meanwhile
                    give_back_from_thread()

        try:
            (result,) = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._any)
        finally:
            if next(first, None) is not None:
                give_back()
        return await result if isawaitable(result) else result


class _OfFunction(FuncMetadata):
    """What the SDK knows of a function, for callers that send values, and want the value that it returned.

    The SDK parses texts that look like JSON, for models that write all arguments as texts: a script's text is one. Of a
    result without a type that it can tell it sends the text alone; here the value goes with it. None it leaves out. For
    a function that is no coroutine it waits until that returns, whatever happens to the call.
    """

    _threads: _Threads = PrivateAttr()

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        return data

    async def call_fn(
        self,
        fn: Callable[..., Any],
        fn_is_async: bool,  # noqa: FBT001  # of the SDK
        arguments: dict[str, Any],
        arguments_to_pass_directly: dict[str, Any] | None = None,
    ) -> Any:
        if fn_is_async:
            return await super().call_fn(fn, fn_is_async, arguments, arguments_to_pass_directly)
        return await self._threads.run(partial(fn, **arguments, **(arguments_to_pass_directly or {})))

    def convert_result(self, result: Any) -> CallToolResult | InputRequiredResult:
        if isinstance(result, Iterator):
            result = list(result)
        if isinstance(result, CallToolResult | InputRequiredResult) or _has_content(result):
            return super().convert_result(result)
        value = self._value(result)
        if value is None:
            return CallToolResult(content=[], _meta={NULL_KEY: True})
        shown = value["result"] if self.wrap_output else value
        return CallToolResult(content=_convert_to_content(shown), structured_content=value)

    def _value(self, result: Any) -> Any:
        """Return a result as JSON data, as the SDK does. It is read this once: iterators in it have nothing more."""
        if self.output_model is None:
            return to_jsonable_python(result, fallback=str)
        adapter = self._output_adapter(self.output_model)
        returned = {"result": result} if self.wrap_output else result
        validated = adapter.validate_python(returned, by_alias=True, by_name=True)
        if isinstance(validated, BaseModel):
            return validated.model_dump(mode="json", by_alias=True)  # of a subclass, also its own fields
        return adapter.dump_python(validated, mode="json", by_alias=True)


def _add(server: MCPServer, function: Callable[..., Any], threads: _Threads) -> None:
    server.add_tool(function)
    tool = server._tool_manager.get_tool(function.__name__)  # noqa: SLF001  # the SDK has no other way to it
    if tool is not None:
        metadata = tool.fn_metadata = _metadata(function, tool.fn_metadata)
        metadata._threads = threads  # noqa: SLF001  # of the same module
        tool.fn = _called_by_aliases(function, metadata.arg_model)


def _called_by_aliases(function: Callable[..., Any], model: type[BaseModel]) -> Callable[..., Any]:
    """Return a function that takes what the SDK passes: by its alias what `Field(alias=…)` gives another name."""
    fields, parameters = model.model_fields.items(), signature(function).parameters
    names = {field.alias: name for name, field in fields if field.alias is not None and field.alias not in parameters}
    if not names:
        return function
    return lambda **given: function(**{names.get(name, name): value for name, value in given.items()})


def _metadata(function: Callable[..., Any], told: FuncMetadata) -> _OfFunction:
    """Return what the SDK tells of a function, with the schema of what it sends and whether it wraps that.

    The SDK tells no type of classes without annotations, as of dates and enums; where there are some, it takes them for
    fields, also of classes as `HttpUrl` that have a schema of their own; and it tells the schema of what is accepted,
    which lacks computed fields.
    """
    returned = signature(function, eval_str=True).return_annotation
    if _has_own_schema(returned):
        told = FuncMetadata(arg_model=told.arg_model)
    model, wraps = told.output_model, told.wrap_output
    try:
        if model is None and _may_have_schema(returned):
            model, wraps = create_model(f"{function.__name__}Output", result=returned), True
        if model is not None:
            adapter = told._output_adapter(model)  # noqa: SLF001  # reads each TypedDict that the SDK can read
            schema = adapter.json_schema(mode="serialization", schema_generator=StrictJsonSchema)
            schema["x-fastmcp-wrap-result"] = wraps
            return _OfFunction(arg_model=told.arg_model, output_schema=schema, output_model=model, wrap_output=wraps)
    except (PydanticUserError, ValueError):
        pass  # JSON Schema has no words for it
    return _OfFunction(**dict(told))


def _has_own_schema(annotation: Any) -> bool:
    """Tell whether a result's type is a class that tells pydantic itself what it is, and no model."""
    bare = _bare(annotation)
    return isinstance(bare, type) and hasattr(bare, "__get_pydantic_core_schema__") and not issubclass(bare, BaseModel)


def _may_have_schema(annotation: Any) -> bool:
    """Tell whether a result's type says more than `dict` or `Any`, and is not content for a model to see."""
    bare = _bare(annotation)
    return (
        isinstance(bare, type)
        and bare.__module__ not in {"builtins", "collections", "collections.abc", "typing"}
        and not issubclass(bare, ContentBlock | Image | Audio | CallToolResult | InputRequiredResult)
    )


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _has_content(result: Any) -> bool:
    """Tell whether a result is for the model to see, or has parts that are: they are blocks, as of any other server."""
    if isinstance(result, list | tuple):
        return any(map(_has_content, result))
    return isinstance(result, ContentBlock | Image | Audio)
