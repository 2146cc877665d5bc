"""The README's command lines are the ones that CI and the tests run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from broker import Config

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


def configs() -> list[tuple[str, dict[str, object]]]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    blocks = [
        (page.name, block) for page in pages for block in re.findall(r"```json\n(.*?)```", page.read_text(), re.DOTALL)
    ]
    return [(name, json.loads(block)) for name, block in blocks]


@pytest.mark.parametrize(("page", "document"), configs(), ids=lambda value: value if isinstance(value, str) else "")
def test_each_config_in_the_pages_can_be_read(page, document):
    text = json.dumps({"mcpServers": {}} | document)
    variables = dict.fromkeys(re.findall(r"[A-Z]+_TOKEN", text), "a value of the environment")
    Config.parse(text, source=page, folder=ROOT, environment=variables)
