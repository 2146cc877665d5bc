"""What the pages show: command lines that codemode takes, configs that can be read, Python that parses, defaults."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
from pydantic import BaseModel
from typer.main import get_command

from broker import Config, ServerConfig
from broker.audit.settings import AuditSettings
from broker.authorization.policy_config import PolicyConfig
from broker.cli.app import app
from broker.config.sandbox_settings import SandboxSettings
from broker.disclosure.settings import DisclosureSettings
from broker.recordings.settings import RecordingSettings
from broker.server.settings import OAuthSettings, ServeSettings
from broker.upstreams.oauth_settings import OAuthClient
from sandbox import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
MIB = 1024 * 1024


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


def headings_of(page: Path) -> set[str]:
    """Return the headings of a page as GitHub writes them in addresses."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    titles = [re.sub(r"[^\w\- ]", "", title.lower()) for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return {title.replace(" ", "-") for title in titles}


def test_links_lead_to_files_and_headings():
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for path, heading in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", document.read_text()):
            target = document.parent / path if path else document
            assert target.exists(), f"{document.name}: {path}"
            assert not heading or heading in headings_of(target), f"{document.name}: {path}#{heading}"


def configs() -> list[tuple[str, dict[str, object]]]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    blocks = [
        (page.name, block) for page in pages for block in re.findall(r"```json\n(.*?)```", page.read_text(), re.DOTALL)
    ]
    return [(name, json.loads(block)) for name, block in blocks]


@pytest.mark.parametrize(("page", "document"), configs(), ids=lambda value: value if isinstance(value, str) else "")
def test_each_config_in_the_pages_can_be_read(page, document):
    text = json.dumps({"mcpServers": {}} | document)
    variables = {name: f"the value of {name}" for name in re.findall(r"[A-Z]+_TOKEN", text)}
    Config.parse(text, source=page, folder=ROOT, environment=variables)


def defaults_in(page: str, table: str) -> dict[str, str]:
    """The keys of a table and their defaults; several keys in one row have the same."""
    _, _, text = (ROOT / "docs" / page).read_text().partition(table)
    found = re.search(r"^\| key.*?(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found
    rows = [line for line in found[0].splitlines() if line.startswith("| `")]
    cells = [re.split(r" *\| *", row.strip("| "))[:2] for row in rows]
    return {key: default for keys, default in cells for key in re.findall(r"`(\w+)`", keys)}


def shown(default: object) -> str:
    match default:
        case bool():
            return f"`{json.dumps(default)}`"
        case str():
            return f"`{default}`"
        case int() | float():
            return f"{default // MIB} MiB" if default >= MIB else f"{int(default):,}"
    return ""


def defaults_of(model: type[BaseModel | Limits]) -> dict[str, str]:
    if issubclass(model, BaseModel):
        return {name: shown(field.default) for name, field in model.model_fields.items()}
    return {field.name: shown(field.default) for field in dataclasses.fields(model)}


@pytest.mark.parametrize(
    ("table", "model"),
    [
        ("\n## Servers\n", ServerConfig),
        ("\n### oauth\n", OAuthClient),
        ("\n## sandbox\n", SandboxSettings),
        ("\n`codemode run --timeout`", Limits),
        ("\n## audit\n", AuditSettings),
    ],
)
def test_the_page_about_the_config_has_each_key_with_its_default(table, model):
    assert defaults_in("config.md", table) == defaults_of(model)


def test_the_keys_of_serve_have_their_defaults_beside_them():
    found = defaults_in("serving.md", "\nMore keys of `serve`:\n")
    assert len(found) > 5
    assert found.items() <= defaults_of(ServeSettings).items()


@pytest.mark.parametrize(
    ("page", "model"),
    [
        ("config.md", Config),
        ("serving.md", ServeSettings),
        ("serving.md", OAuthSettings),
        ("config.md", DisclosureSettings),
        ("recordings.md", RecordingSettings),
        ("authorization.md", PolicyConfig),
    ],
)
def test_each_key_of_a_section_is_on_its_page(page, model):
    text = (ROOT / "docs" / page).read_text()
    keys = [field.validation_alias or name for name, field in model.model_fields.items()]
    assert [key for key in keys if f"`{key}`" not in text and f'"{key}"' not in text] == []


def commands(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, f"{path} {name}".strip())


COMMANDS = dict(commands(get_command(app)))


def documented_lines() -> list[str]:
    """The lines that call `codemode`, in the pages and in the examples of `--help`."""
    pages = [page.read_text() for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]]
    blocks = [block for page in pages for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)]
    helps = [command.help or "" for command in COMMANDS.values()]
    lines = [line.strip() for text in [*blocks, *helps] for line in text.splitlines()]
    return sorted({line for line in lines if line.startswith("codemode ")})


@pytest.mark.parametrize("line", documented_lines())
def test_each_command_line_that_is_shown_is_one_that_codemode_takes(line):
    words = shlex.split(re.split(r" (?:[|>]|  )", line)[0], comments=True)[1:]
    path = ""
    while words and f"{path} {words[0]}".strip() in COMMANDS:
        path = f"{path} {words.pop(0)}".strip()
    assert path
    assert COMMANDS[path].make_context(path, words).info_name == path


def test_a_command_line_that_codemode_does_not_take_would_be_found():
    with pytest.raises(typer.BadParameter):
        COMMANDS["run"].make_context("run", ["report.py", "--timeout", "soon"])


@pytest.mark.parametrize("page", ["scripts.md", "embedding.md", "recordings.md"])
def test_the_python_of_a_page_parses_and_names_what_there_is(page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        code = compile(block, page, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(code):
            if isinstance(node, ast.ImportFrom) and node.module != "tools":
                module = import_module(str(node.module))
                assert [name.name for name in node.names if not hasattr(module, name.name)] == []
