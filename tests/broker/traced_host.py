"""A program that embeds the broker and traces itself with OpenTelemetry; with `serve`, its server.

It prints a JSON object: for each of its parts the spans that ended in it, in that order, and what the script came to.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from mcp import Client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context  # noqa: TC002  # read at run time
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from broker import Broker, BrokerServer, Config, Grant, ServerConfig
from broker.store import Store
from sandbox import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

exporter = InMemorySpanExporter()
desk, far = MCPServer("desk", log_level="CRITICAL"), MCPServer("far", log_level="CRITICAL")
parts: dict[str, dict[str, object]] = {}


@desk.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@desk.tool()
def fail(reason: str) -> str:
    """Fails."""
    raise ValueError(reason)


@far.tool()
def traceparent(ctx: Context) -> str:
    """Returns the trace that the request belongs to."""
    meta: Mapping[str, object] = ctx.request_context.meta or {}
    return str(meta["traceparent"])


def note(part: str, value: object = None) -> None:
    spans = [
        {
            "name": span.name,
            "kind": span.kind.name,
            "trace": f"{span.context.trace_id:032x}",
            "id": f"{span.context.span_id:016x}",
            "parent": None if span.parent is None else f"{span.parent.span_id:016x}",
            "status": span.status.status_code.name,
            "attributes": dict(span.attributes or {}),
            "text": span.to_json(),
        }
        for span in exporter.get_finished_spans()
    ]
    exporter.clear()
    parts[part] = {"spans": spans, "value": value}


async def main() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    config = Config(servers={"far": ServerConfig(command=sys.executable, args=(__file__, "serve"))})
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "broker.sqlite3") as store, anyio.fail_after(60):
        async with Broker(config, servers={"desk": desk}, startup_seconds=30, store=store) as broker:
            await perform(broker)
    sys.stdout.write(json.dumps(parts))


async def perform(broker: Broker) -> None:
    session = broker.session(grants=[Grant("*.*")])
    await session.get_tool_details(["far.traceparent", "desk.add", "desk.fail"])
    note("descriptions")
    with trace.get_tracer("host").start_as_current_span("turn"):
        ran = await session.execute_code(
            "from tools import desk, far\nawait desk.add(a=1, b=2)\nawait far.traceparent()"
        )
    note("two calls", ran.value)
    await session.execute_code("from tools import desk\nawait desk.fail(reason='the s3cr3t')")
    note("a tool that fails")
    await session.execute_code("raise type('s3cr3t' * 40, (Exception,), {})('the s3cr3t')")
    note("an exception of its own")
    await session.execute_code("while True: pass", limits=Limits(cpu_seconds=0.2))
    note("a limit")
    parked = await broker.session(parks=True).execute_code(
        "from tools import desk\nawait desk.add(a=1, b=2)", describe_references=True
    )
    note("nobody to ask")
    await session.resume(parked.run_id)
    note("going on", parked.run_id)
    async with Client(BrokerServer(broker, make_session=lambda _: session).mcp) as client:
        await client.call_tool("execute_code", {"code": "from tools import desk\nawait desk.add(a=1, b=2)"})
    note("over MCP")


if sys.argv[1:] == ["serve"]:
    far.run()
else:
    anyio.run(main)
