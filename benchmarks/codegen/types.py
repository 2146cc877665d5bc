"""All stubs through the oracle, `ty` and `mypy --strict`; how much of what schemas say has a type."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from ty import find_ty_bin

from benchmarks.codegen.corpus import stubs_by_namespace
from codegen import render_module
from codegen.stubs.source_check import check_stub_source


def run(every: int) -> None:
    """Print the figures."""
    by_namespace = stubs_by_namespace(every)
    stubs = [stub for several in by_namespace.values() for stub in several]
    modules = {name: render_module(name, several) for name, several in by_namespace.items()}
    for text in modules.values():
        check_stub_source(text)
        compile(text, "stub", "exec")
    print(f"tools {len(stubs)} of {len(modules)} servers: all parse and hold only the nodes of stubs")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in modules.items():
            Path(folder, f"{name}.pyi").write_text(text, encoding="utf-8")
        Path(folder, "control_of_the_checkers.pyi").write_text("x: int = ''\ny: Missing\n", encoding="utf-8")
        _report("ty", [find_ty_bin(), "check", "--python-version", "3.14", "--output-format", "concise", "."], folder)
        mypy = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.14", "--config-file", ""]
        _report("mypy --strict", [*mypy, "--cache-dir", "/dev/null", "."], folder)
    said, typed = sum(stub.typed.said for stub in stubs), sum(stub.typed.typed for stub in stubs)
    print(f"typed better than Any: {typed} of {said} parameters and fields ({typed / said:.2%})")
    reasons = Counter(reason.split(": ", 1)[-1] for stub in stubs for reason in stub.degradations)
    print(f"degraded: {sum(bool(stub.degradations) for stub in stubs)} tools", dict(reasons.most_common(8)))


def _report(name: str, command: list[str], folder: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if "error" in line and not line.startswith("Found")]
    control = [line for line in lines if line.startswith("control_of_the_checkers")]
    others = [line for line in lines if not line.startswith("control_of_the_checkers")]
    print(f"{name}: {len(others)} errors in stubs, {len(control)} in the control that must have some")
    for line in others[:5]:
        print("  ", line)
