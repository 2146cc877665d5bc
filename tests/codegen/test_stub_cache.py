from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import codegen
from codegen.stubs.generate import build_stub
from codegen.stubs.stub_cache import StubCache
from codegen.stubs.stub_files import StubFiles, digest_of_sources
from tests.codegen.definitions import tool_spec

if TYPE_CHECKING:
    from codegen import Stub

CODEGEN = Path(codegen.__file__).parent
SPEC = tool_spec(
    {
        "name": "look",
        "description": "Look at\na thing",
        "inputSchema": {"type": "object", "properties": {"from": {"type": "string"}, "\ud800": {"type": "integer"}}},
        "outputSchema": {"type": "object", "properties": {"a-b": {"enum": ["x", None, 1]}}},
    }
)


def fresh() -> Stub:
    return build_stub(SPEC, namespace="n", function="look")


def kept(folder: Path) -> Stub | None:
    return StubFiles(folder).read(SPEC, "n", "look")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "stubs"


def test_a_stub_from_disk_is_the_stub_that_was_written(folder: Path) -> None:
    StubFiles(folder).write(fresh())
    assert kept(folder) == fresh()


def test_the_second_cache_does_not_generate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = StubCache(files=StubFiles(folder)).stub(SPEC, namespace="n", function="look")
    monkeypatch.setattr("codegen.stubs.stub_cache.build_stub", None)
    assert StubCache(files=StubFiles(folder)).stub(SPEC, namespace="n", function="look") == first


def test_another_definition_name_or_function_is_another_file(folder: Path) -> None:
    files = StubFiles(folder)
    files.write(fresh())
    assert files.read(SPEC, "n", "other") is None
    assert files.read(SPEC, "other", "look") is None
    assert files.read(tool_spec({"name": "look"}), "n", "look") is None


@pytest.mark.parametrize("module", ["identifiers.py", "schemas/merging.py", "stubs/render.py"])
def test_a_stub_made_by_other_code_is_another_file(tmp_path: Path, module: str) -> None:
    copy = tmp_path / "codegen"
    shutil.copytree(CODEGEN, copy)
    assert digest_of_sources(copy) == digest_of_sources(CODEGEN)
    with (copy / module).open("a") as text:
        text.write("# changed\n")
    assert digest_of_sources(copy) != digest_of_sources(CODEGEN)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"source": 1}', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_file_is_no_file(folder: Path, damage: bytes) -> None:
    StubFiles(folder).write(fresh())
    next(folder.glob("*.json")).write_bytes(damage)
    assert kept(folder) is None


def test_code_in_a_file_is_not_believed(folder: Path) -> None:
    StubFiles(folder).write(fresh())
    path = next(folder.glob("*.json"))
    path.write_text(path.read_text().replace("async def look", "import os\\nasync def look"))
    assert kept(folder) is None


def test_the_folder_is_private(folder: Path) -> None:
    StubFiles(folder).write(fresh())
    assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_that_others_may_write_to_is_not_used(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    StubFiles(folder).write(fresh())
    assert os.listdir(folder) == []  # noqa: PTH208  # the plain question
    assert kept(folder) is None


def test_a_folder_that_cannot_be_made_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    files = StubFiles(tmp_path / "file" / "stubs")
    files.write(fresh())
    assert files.read(SPEC, "n", "look") is None


def test_memory_holds_the_stubs_used_last() -> None:
    cache = StubCache(entries=2)
    first = cache.stub(SPEC, namespace="n", function="a")
    cache.stub(SPEC, namespace="n", function="b")
    assert cache.stub(SPEC, namespace="n", function="a") is first
    cache.stub(SPEC, namespace="n", function="c")
    assert cache.stub(SPEC, namespace="n", function="a") is first
    assert cache.stub(SPEC, namespace="n", function="b") == build_stub(SPEC, namespace="n", function="b")
