"""The scripts, and how each may end."""

from __future__ import annotations

GOOD = "calls"
"""The one that has to succeed beside all others."""

SCRIPTS = {
    "sum": "sum(range(1_000))",
    GOOD: "import asyncio\nfrom tools import desk\nlen(await asyncio.gather(*(desk.add(a=n, b=1) for n in range(20))))",
    "raises": "1 / 0",
    "syntax": "x = (",
    "endless": "while True: pass",
    "memory": "x = 'x' * 100\nwhile True: x += x",
    "flood": "while True: print('x' * 10_000)",
    "recursion": "import json\njson.loads('[' * 500_000)",
    "crash": "f = lambda: 0\nf.__code__ = f.__code__.replace(co_code=b'\\xff' * 50)\nf()",
    "silent server": "from tools import silent\nawait silent.echo(text='x')",
    "display": "display(b'x' * 50_000, mime_type='image/png')",
}
DYING = {"dying server": "from tools import dying\nawait dying.echo(text='x')"}

ENDS = {
    "sum": {"completed"},
    GOOD: {"completed"},
    "raises": {"ZeroDivisionError"},
    "syntax": {"SyntaxError"},
    "endless": {"wall_seconds"},
    "memory": {"MemoryError", "wall_seconds"},
    "flood": {"output_bytes", "wall_seconds"},
    "recursion": {"stack", "wall_seconds"},
    "crash": {"SandboxTrap"},
    "silent server": {"ToolTimeoutError"},
    "display": {"completed"},
    "dying server": {"ToolOutcomeUnknown", "ToolUnavailableError"},
}
"""How each may end: completed, with an exception, or at a limit; on a busy machine at that of time."""
