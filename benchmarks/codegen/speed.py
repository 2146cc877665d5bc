"""How long a new stub, a cached one and a check take."""

from __future__ import annotations

import gc
import resource
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.codegen.corpus import definitions, percentile, spec_of
from codegen import TypeChecker, check
from codegen.schemas.type_generator import generate_types
from codegen.stubs.generate import build_stub
from codegen.stubs.stub_cache import StubCache
from codegen.stubs.stub_files import StubFiles
from tests.codegen.world import stubs

if TYPE_CHECKING:
    from collections.abc import Callable

    from codegen import ToolSpec

_Time: TypeAlias = "tuple[float, float]"
_SERVERS = 500
_SCRIPT = "from tools import hub\n" + "".join(
    f'found_{n} = await hub.list_issues(repo="a/b", limit={n})\n'
    f'for issue in found_{n}["issues"]:\n'
    f'    if issue["state"] == "open" and issue.get("body"):\n'
    f'        print(issue["number"], issue["title"].upper(), f"{{issue[\'author\'][\'login\']}}")\n'
    f'print(sum(i.get("comments", 0) for i in found_{n}["issues"]))\n'
    for n in range(20)
)


def run(every: int) -> None:
    """Print the figures."""
    specs = [spec_of(definition) for definition in definitions(every)]
    build_stub(specs[0], namespace="n", function="f")
    gc.collect()
    gc.freeze()
    _print("new tool, warm process", _times(specs, lambda spec: build_stub(spec, namespace="n", function="f")))
    _print("new tool, no like types before", _times(specs[::10], _without_memory))
    with tempfile.TemporaryDirectory() as folder:
        cache = StubCache(files=StubFiles(Path(folder, "stubs")))
        _times(specs, lambda spec: cache.stub(spec, namespace="n", function="f"))
        _print("from memory", _times(specs, lambda spec: cache.stub(spec, namespace="n", function="f")))
        fresh = StubCache(files=StubFiles(Path(folder, "stubs")))
        _print("from disk", _times(specs, lambda spec: fresh.stub(spec, namespace="n", function="f")))
    _print("check of a 101-line script", _checks({}))
    _print("... by a process that is started for it", _first_checks())
    listed = {f"server_{server}": [f"tool_{tool}" for tool in range(20)] for server in range(_SERVERS)}
    _print(f"... beside {_SERVERS} servers of 20 tools that it does not name", _checks(listed))


def _checks(listed: dict[str, list[str]]) -> list[_Time]:
    with TypeChecker() as checker:
        check(_SCRIPT, stubs(), listed=listed, checker=checker)
        scripts = [f"{_SCRIPT}# {number}\n" for number in range(20)]  # what was checked before is not asked again
        return [_timed(partial(check, script, stubs(), listed=listed, checker=checker)) for script in scripts]


def _first_checks() -> list[_Time]:
    return [_timed(lambda: check(_SCRIPT, stubs())) for _ in range(20)]


def _without_memory(spec: ToolSpec) -> None:
    generate_types.cache_clear()
    build_stub(spec, namespace="n", function="f")


def _times(specs: list[ToolSpec], action: Callable[[ToolSpec], object]) -> list[_Time]:
    for spec in specs:
        _ = spec.digest
    return [_timed(lambda spec=spec: action(spec)) for spec in specs]  # type: ignore[misc]


def _timed(action: Callable[[], object]) -> _Time:
    began, used = time.perf_counter(), _processor_seconds()
    action()
    return time.perf_counter() - began, _processor_seconds() - used


def _processor_seconds() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def _print(name: str, times: list[_Time]) -> None:
    """Print the time that passed and the processor's, which other programs disturb less."""
    for what, seconds in zip(("passed", "processor"), zip(*times, strict=True), strict=True):
        half, most, worst = (percentile(list(seconds), share) * 1000 for share in (0.5, 0.95, 1.0))
        print(f"{name}, {what}: p50 {half:.2f} ms, p95 {most:.2f} ms, worst {worst:.0f} ms ({len(times)})")
