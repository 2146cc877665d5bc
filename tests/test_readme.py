"""The README's command lines are the ones that CI and the tests run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def command_lines() -> list[str]:
    quick_start = (ROOT / "README.md").read_text().split("## Quick start")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)\n```", quick_start, re.DOTALL)


def test_the_quick_start_has_exactly_two_command_lines():
    assert len(command_lines()) == 2
    assert all("\n" not in line for line in command_lines())


def test_ci_runs_the_readmes_test_command():
    assert f"{command_lines()[1]} || failed=1" in (ROOT / ".ci" / "run").read_text().splitlines()


@pytest.mark.parametrize("example", ["added_lines.py", "library.py"])
def test_the_readmes_python_is_a_file_that_the_system_tests_run(example):
    source = (ROOT / "examples" / example).read_text()
    assert f"```python\n{source}```" in (ROOT / "README.md").read_text()


def test_links_lead_to_files():
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
