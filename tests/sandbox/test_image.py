"""The compiled image: where it lies, who may read it, and what happens when it is missing or damaged."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import stat

import pytest
import wasmtime

from sandbox import ImageError
from sandbox.image import REBUILD, compiled_path, component_digest, load_image

EMPTY = "(component)"


@pytest.fixture
def component(tmp_path):
    """A component of a few bytes, with the note that a build leaves beside it."""
    path = tmp_path / "small.wasm"
    path.write_bytes(wasmtime.wat2wasm(EMPTY))
    note(path)
    return path


def note(component, **fields) -> None:
    digest = hashlib.sha256(component.read_bytes()).hexdigest()
    component.with_suffix(".json").write_text(json.dumps({"sha256": digest} | fields))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "new" / "cache"


def test_an_image_is_compiled_once_and_then_found(component, cache):
    compiling = []

    @contextlib.contextmanager
    def show():
        compiling.append("begins")
        yield
        compiling.append("ends")

    first = load_image(component, cache=cache, compiling=show)
    second = load_image(component, cache=cache, compiling=show)
    assert compiling == ["begins", "ends"]
    assert first.digest == second.digest == component_digest(component)
    assert first.compiled == second.compiled == compiled_path(first.digest, cache)
    assert [path.name for path in cache.iterdir()] == [first.compiled.name]


def test_the_cache_is_private_to_its_user(component, cache):
    compiled = load_image(component, cache=cache).compiled
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE(compiled.stat().st_mode) == 0o600


def test_a_cache_that_others_can_enter_is_closed_to_them(component, cache):
    cache.mkdir(parents=True, mode=0o777)
    cache.chmod(0o777)
    load_image(component, cache=cache)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"not code", b"\x7fELF" + b"\x00" * 500])
def test_a_corrupt_compiled_image_is_compiled_again(component, cache, damage):
    compiled = load_image(component, cache=cache).compiled
    whole = compiled.read_bytes()
    compiled.unlink()  # it is mapped: writing into it would change the code in use
    compiled.write_bytes(damage)
    assert load_image(component, cache=cache).compiled == compiled
    assert compiled.read_bytes() == whole


def test_a_truncated_compiled_image_is_compiled_again(component, cache):
    compiled = load_image(component, cache=cache).compiled
    whole = compiled.read_bytes()
    compiled.unlink()
    compiled.write_bytes(whole[: len(whole) // 2])
    load_image(component, cache=cache)
    assert compiled.read_bytes() == whole


def test_another_component_is_another_file(component, cache, tmp_path):
    other = tmp_path / "other.wasm"
    other.write_bytes(wasmtime.wat2wasm("(component (core module))"))
    note(other)
    assert load_image(component, cache=cache).compiled != load_image(other, cache=cache).compiled
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("missing", ["small.wasm", "small.json"])
def test_a_missing_image_says_how_to_get_it(component, cache, missing):
    component.with_name(missing).unlink()
    with pytest.raises(ImageError) as caught:
        load_image(component, cache=cache)
    assert str(caught.value) == f"the guest image small.wasm is not in the installed package: {REBUILD}"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"sha256": 5}'])
def test_an_unreadable_note_is_a_missing_image(component, cache, text):
    component.with_suffix(".json").write_text(text)
    with pytest.raises(ImageError, match="is not in the installed package"):
        load_image(component, cache=cache)


def test_a_damaged_image_is_not_compiled(component, cache):
    component.write_bytes(component.read_bytes() + b"\x00")
    with pytest.raises(ImageError) as caught:
        load_image(component, cache=cache)
    assert str(caught.value) == f"the guest image small.wasm is damaged: {REBUILD}"
    assert list(cache.iterdir()) == []


def test_an_image_that_is_no_component_says_that_it_can_not_be_compiled(component, cache):
    component.write_bytes(b"\x00asm\x01\x00\x00\x00")
    note(component)
    with pytest.raises(ImageError, match=r"^wasmtime [0-9.]+ can't compile the guest image: reinstall"):
        load_image(component, cache=cache)


def test_a_cache_that_can_not_be_made_says_what_to_set(component, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ImageError, match=r"can't be made .*: set XDG_CACHE_HOME elsewhere$"):
        load_image(component, cache=tmp_path / "file" / "cache")


def test_processes_that_compile_at_once_all_end_up_with_a_whole_image(component, cache):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=load_image, args=(component,), kwargs={"cache": cache}) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert [path.suffix for path in cache.iterdir()] == [".cwasm"]
    load_image(component, cache=cache)


def test_the_installed_image_is_the_one_that_its_note_names(image):
    assert image.digest == component_digest()
