"""Which package may import which, and where the one path to an upstream is."""

from __future__ import annotations

import ast
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {"codegen": {"codegen"}, "sandbox": {"sandbox"}, "broker": {"broker", "codegen", "sandbox"}}
GUEST = ROOT / "sandbox" / "guest"


def sources(package: str) -> list[Path]:
    found = [path for path in sorted((ROOT / package).rglob("*.py")) if not path.is_relative_to(GUEST)]
    assert found, package
    return found


def imported_modules(path: Path) -> set[str]:
    package = path.parent.relative_to(ROOT).parts
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


def is_of_the_guest(module: str) -> bool:
    return f"{module}.".startswith("sandbox.guest.")


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_import_each_other_in_one_direction_only(package):
    ours = set(MAY_IMPORT)
    wrong = {
        str(path.relative_to(ROOT)): roots
        for path in sources(package)
        if (roots := {name.partition(".")[0] for name in imported_modules(path)} & ours - MAY_IMPORT[package])
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("package", "room", "others"),
    [
        ("codegen", "", {"schemas", "stubs", "checking"}),
        ("codegen", "schemas", {"stubs", "checking"}),
        ("codegen", "stubs", {"checking"}),
        ("broker/recordings", "", {"keeping", "journal", "replay", "showing"}),
        ("broker/recordings", "keeping", {"journal", "replay", "showing"}),
        ("broker/recordings", "journal", {"replay", "showing"}),
        ("broker/recordings", "replay", {"showing"}),
        ("broker/recordings", "showing", {"journal", "replay"}),
    ],
)
def test_the_rooms_of_a_package_know_those_before_them_alone(package, room, others):
    found = [path for path in sorted((ROOT / package / room).glob("*.py")) if path.name != "__init__.py"]
    assert found
    later = tuple(f"{package.replace('/', '.')}.{other}." for other in others)
    wrong = {
        path.name: names for path in found if (names := {n for n in imported_modules(path) if n.startswith(later)})
    }
    assert wrong == {}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_the_host_never_imports_the_guest(package):
    wrong = [path for path in sources(package) if any(map(is_of_the_guest, imported_modules(path)))]
    assert wrong == []


def test_the_guest_imports_nothing_of_the_host():
    found = sorted(GUEST.rglob("*.py"))
    assert found
    for path in found:
        hosts = {name for name in imported_modules(path) if name.partition(".")[0] in MAY_IMPORT}
        assert {name for name in hosts if not is_of_the_guest(name)} == set(), path


def callers_of(method: str, package: str) -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for path in sources(package)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == method
    }


def test_one_module_alone_calls_tools_on_upstreams():
    # callees.py alone asks upstream.py for a call, which calls.py hands to the SDK.
    senders = {"broker/calls/callees.py", "broker/upstreams/calls.py"}
    # The server's end of a connection in this process: it calls what a request would reach.
    end_of_server = "broker/upstreams/plain_tools.py"
    assert callers_of("call_tool", "broker") == senders | {end_of_server}
    assert callers_of("_handle_call_tool", "broker") == {end_of_server}
    # tool_calls.py, which authorizes, alone makes what calls reach.
    makers = {
        str(p.relative_to(ROOT))
        for p in sources("broker")
        if {"broker.calls.callees.ServerTools", "broker.calls.extraction.CalledModel"} & imported_modules(p)
    }
    assert makers == {"broker/calls/tool_calls.py"}


def test_the_sdk_client_is_used_below_upstreams_alone():
    users = [p for p in sources("broker") if any(n.startswith("mcp.client") for n in imported_modules(p))]
    assert users
    assert all(path.parent == ROOT / "broker" / "upstreams" for path in users), users


def test_every_package_is_typed_and_shipped():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == set(MAY_IMPORT)
    assert all((ROOT / package / "py.typed").exists() for package in MAY_IMPORT)


def test_every_module_that_a_docstring_names_is_there():
    paths = [f"/{path.relative_to(ROOT)}" for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py")]
    gone = {
        (path.name, name)
        for package in MAY_IMPORT
        for path in sources(package)
        for name in re.findall(r"(?<![\w*/])[a-z_][\w/]*\.py\b", ast.get_docstring(ast.parse(path.read_text())) or "")
        if not any(one.endswith(f"/{name}") for one in paths)
    }
    assert gone == set()


@pytest.mark.parametrize(
    "room",
    [
        *("codegen", "codegen/schemas", "codegen/stubs", "codegen/checking", "sandbox", "broker", "broker/upstreams"),
        *("broker/tools", "broker/disclosure", "broker/runs", "broker/calls", "broker/authorization"),
    ],
)
def test_the_map_has_every_module_of_a_room_that_it_shows_in_detail(room):
    named = re.findall(r"`[\w/]*?([\w*]+\.py)`", (ROOT / "docs" / "architecture.md").read_text())
    modules = {path.name for path in (ROOT / room).glob("*.py")} - {"__init__.py"}
    assert modules
    assert {name for name in modules if not any(fnmatch(name, pattern) for pattern in named)} == set()
