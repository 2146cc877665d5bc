"""Stubs of hostile definitions where they are used: they load, and arguments arrive under the keys of the server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from codegen import render_module
from sandbox import Completed, Returned, Sandbox
from tests.codegen.definitions import hostile_definitions
from tests.codegen.further_attacks import attacks
from tests.codegen.test_attacks import stub_of

if TYPE_CHECKING:
    from sandbox import Call

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_every_attack_can_be_loaded_and_called() -> None:
    definitions: list[Any] = [*attacks().values(), *(case.values[0] for case in hostile_definitions())]
    stubs = {f"f{index}": stub_of(definition) for index, definition in enumerate(definitions)}
    sent = {name: {one.name: "v" for one in stub.parameters} for name, stub in stubs.items()}
    modules = [render_module("n", [stub]) for stub in stubs.values()]
    arrived: dict[str, Any] = {}

    async def answer(call: Call) -> Returned:
        arrived[call.function.removeprefix("n.")] = call.arguments
        return Returned(None)

    loaded = "    exec(compile(text, 'stub', 'exec'), {})\n"
    loading = f"import json\nfor text in json.loads({json.dumps(modules)!r}):\n{loaded}"
    calling = "from tools import n\n" + "".join(f"await n.{name}(**{given!r})\n" for name, given in sent.items())
    manifest = {"n": {"doc": "", "functions": {name: stub.manifest_entry() for name, stub in stubs.items()}}}
    with anyio.fail_after(120):
        async with Sandbox(isolation="thread") as sandbox:
            ended = await sandbox.run(loading + calling, answer=answer, manifest=manifest)
    assert ended.outcome == Completed(None)
    assert arrived == {name: {one.key: "v" for one in stub.parameters} for name, stub in stubs.items()}
