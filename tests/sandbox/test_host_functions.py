"""The import surface: what a guest can reach of the host is this list and nothing else."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import wasmtime
from wasmtime import component as wasm

from sandbox import Completed, Raised, Sandbox, Stopped
from sandbox.engine import FIBER_STACK, MAX_WASM_STACK, engine
from sandbox.host_functions import HOST_FUNCTIONS, _bound

pytestmark = pytest.mark.anyio

SURFACE = {
    "": {"write"},
    "wasi:cli/environment@0.2.9": {"get-arguments", "get-environment", "initial-cwd"},
    "wasi:clocks/monotonic-clock@0.2.9": {"now", "resolution", "subscribe-duration", "subscribe-instant"},
    "wasi:clocks/wall-clock@0.2.9": {"now", "resolution"},
    "wasi:filesystem/preopens@0.2.9": {"get-directories"},
    "wasi:io/poll@0.2.9": {"[method]pollable.block", "[method]pollable.ready", "poll"},
    "wasi:random/random@0.2.9": {"get-random-bytes", "get-random-u64"},
}
"""Everything with a body. A new line here is a new way out of the sandbox: say in the commit why it is needed."""

TRAPS = {
    "wasi:cli/exit@0.2.9",
    "wasi:cli/stderr@0.2.9",
    "wasi:cli/stdin@0.2.9",
    "wasi:cli/stdout@0.2.9",
    "wasi:cli/terminal-input@0.2.9",
    "wasi:cli/terminal-output@0.2.9",
    "wasi:cli/terminal-stderr@0.2.9",
    "wasi:cli/terminal-stdin@0.2.9",
    "wasi:cli/terminal-stdout@0.2.9",
    "wasi:filesystem/types@0.2.9",
    "wasi:io/error@0.2.9",
    "wasi:io/streams@0.2.9",
    "wasi:sockets/instance-network@0.2.9",
    "wasi:sockets/ip-name-lookup@0.2.9",
    "wasi:sockets/network@0.2.9",
    "wasi:sockets/tcp-create-socket@0.2.9",
    "wasi:sockets/tcp@0.2.9",
    "wasi:sockets/udp-create-socket@0.2.9",
    "wasi:sockets/udp@0.2.9",
}
"""What the component imports and the linker defines as a trap only."""


def test_the_host_defines_exactly_these_functions():
    assert {interface: set(functions) for interface, functions in HOST_FUNCTIONS.items()} == SURFACE


def test_the_component_imports_nothing_beyond_these(image):
    imported = set(image.component.type.imports(engine()))
    assert imported - {"write"} - set(SURFACE) == TRAPS
    assert set(SURFACE) - {""} <= imported


@pytest.mark.parametrize(
    "error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, StopIteration]
)
def test_whatever_a_host_function_raises_is_a_trap_of_its_guest_alone(error):
    def body(_guest):
        raise error("secret")

    with pytest.raises(wasmtime.WasmtimeError, match=r"^a host function failed$") as caught:
        _bound(body)(SimpleNamespace())
    assert caught.value.__cause__ is None


async def test_a_fault_while_text_is_taken_is_a_trap_of_its_guest_alone(image, monkeypatch):
    def body(*_):
        raise KeyboardInterrupt

    async with Sandbox(cache=image.compiled.parent, isolation="thread", pool=None) as sandbox:
        monkeypatch.setitem(HOST_FUNCTIONS[""], "write", body)
        broken = await sandbox.run("print(1)")
        monkeypatch.undo()
        assert isinstance(broken.outcome, Raised)
        assert (broken.outcome.type, broken.stdout) == ("SandboxTrap", "")
        assert "the sandbox failed on the host's side" in broken.outcome.message
        assert (await sandbox.run("print(1)")).stdout == "1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's count of memory is Linux's")
async def test_the_host_keeps_no_copies_of_a_long_text(image):
    """The guest's own memory, and one copy of wasmtime's, are all that a text of 60 MB takes."""
    script = "import wit_world\ntext = 'x' * 60_000_000\n"
    grown = []
    async with Sandbox(cache=image.compiled.parent, isolation="thread", pool=None) as sandbox:
        for attack in ("text.encode().decode()", "wit_world.write(1, text)"):
            await sandbox.run(script)
            forget_peak()
            before = memory("VmRSS")
            await sandbox.run(script + attack)
            grown.append(memory("VmHWM") - before)
    assert grown[1] - grown[0] < 80 * 1024 * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def memory(what: str) -> int:
    found = re.search(rf"^{what}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.parametrize(
    "attack",
    [
        "wit_world.write(1, 'x' * 200_000)",
        "wit_world.write(250, 'to nowhere')",
        "wit_world.write(1, '\\x1b[2J')",
        "[wit_world.write(1, '') for _ in range(1000)]",
        "wit_world.write(1, b'bytes')",
        "wit_world.write(-1, 'x')",
        "wit_world.write(1)",
        "wit_world.write(1, '\\ud800')",
        "import componentize_py_runtime as r\nr.call_import(0, [], 99)",
        "import componentize_py_runtime as r\nr.drop_resource(1, 1)",
    ],
)
async def test_a_script_that_calls_the_host_by_itself_gains_nothing(sandbox: Sandbox, attack):
    result = await sandbox.run(f"import wit_world\n{attack}\n'survived'")
    assert result.outcome != Stopped("output_bytes", 1024 * 1024)
    assert "\x1b" not in result.stdout
    assert len(result.stdout) <= 1024 * 1024
    assert (await sandbox.run("1 + 1")).outcome == Completed(2)


def test_a_guest_runs_on_four_times_the_stack_that_it_may_use():
    assert FIBER_STACK >= 4 * MAX_WASM_STACK


def test_no_wasi_of_wasmtime_is_linked(image):
    # An instance gets by without any WASI context; with wasmtime's WASI this would fail for the lack of one.
    store = wasmtime.Store(engine())
    store.set_epoch_deadline(1_000_000)
    assert isinstance(image.linker.instantiate(store, image.component), wasm.Instance)
