"""Golden stubs: a tool definition beside the module that is made of it, compared whole.

To write the modules anew after an intended change, run these tests with `CODEGEN_WRITE_CASES=1` and read the
difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from codegen import Stub, assign_identifiers, render_module
from codegen.stubs.generate import build_stub
from codegen.stubs.source_check import check_stub_source
from tests.codegen.definitions import tool_spec
from tests.codegen.type_checkers import mypy_problems, ty_problems

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


def stub_of(case: Path) -> Stub:
    spec = tool_spec(json.loads(case.read_text(encoding="utf-8")))
    return build_stub(spec, namespace="tools", function=assign_identifiers([spec.name])[spec.name])


def module_of(case: Path) -> str:
    return render_module(case.stem, [stub_of(case)])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_stub_is_the_golden_one(case: Path) -> None:
    golden = case.with_suffix(".stub")
    if os.environ.get("CODEGEN_WRITE_CASES"):
        golden.write_text(module_of(case), encoding="utf-8")
    assert module_of(case) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_golden_stub_is_a_stub_and_can_be_loaded(case: Path) -> None:
    golden = case.with_suffix(".stub").read_text(encoding="utf-8")
    check_stub_source(golden)
    compile(golden, case.stem, "exec")


def test_there_are_forty_telling_cases() -> None:
    assert len(CASES) >= 40


def test_the_golden_stubs_pass_ty() -> None:
    assert ty_problems({f"{case.stem}.pyi": case.with_suffix(".stub").read_text() for case in CASES}) == ""


def test_the_golden_stubs_pass_strict_mypy() -> None:
    assert mypy_problems({f"{case.stem}.pyi": case.with_suffix(".stub").read_text() for case in CASES}) == ""
