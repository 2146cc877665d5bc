"""The compiled image: where it lies, who may read it, and what happens when it is missing or damaged."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import multiprocessing
import os
import re
import stat
import subprocess
import sys

import pytest
import wasmtime

from sandbox import ImageError, WorkerError
from sandbox import compiled as compiled_images
from sandbox.compiled import CompiledFile
from sandbox.image_loading import compiled_path, component_digest, load_image
from sandbox.worker_process import WorkerProcess

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


@pytest.fixture
def proofs(tmp_path):
    return tmp_path / "new" / "proofs"


@pytest.fixture
def load(component, cache, proofs):
    """Loads the small component and says whether it had to be compiled."""

    def load():
        shown = []

        @contextlib.contextmanager
        def show(_unkept):
            shown.append(True)
            yield

        return load_image(component, cache=cache, proofs=proofs, compiling=show), bool(shown)

    return load


def age(monkeypatch):
    """Lets files count as old at once: the next check notes which file it found."""
    monkeypatch.setattr(compiled_images, "SETTLED_NS", -(10**18))


def test_an_image_is_compiled_once_and_then_found(component, cache, proofs):
    compiling = []

    @contextlib.contextmanager
    def show(_unkept):
        compiling.append("begins")
        yield
        compiling.append("ends")

    first = load_image(component, cache=cache, proofs=proofs, compiling=show)
    second = load_image(component, cache=cache, proofs=proofs, compiling=show)
    assert compiling == ["begins", "ends"]
    assert first.digest == second.digest == component_digest(component)
    assert first.compiled == second.compiled == compiled_path(first.digest, cache)
    assert [path.name for path in cache.iterdir()] == [first.compiled.name]


def test_the_cache_is_private_to_its_user(component, cache, proofs):
    compiled = load_image(component, cache=cache, proofs=proofs).compiled
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE(compiled.stat().st_mode) == 0o600


def test_a_cache_that_others_can_enter_is_closed_to_them(component, cache, proofs):
    cache.mkdir(parents=True, mode=0o777)
    cache.chmod(0o777)
    load_image(component, cache=cache, proofs=proofs)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"not code", b"\x7fELF" + b"\x00" * 500])
def test_a_corrupt_compiled_image_is_compiled_again(load, damage):
    compiled = load()[0].compiled
    whole = compiled.read_bytes()
    compiled.unlink()  # it is mapped: writing into it would change the code in use
    compiled.write_bytes(damage)
    image, was_compiled = load()
    assert was_compiled
    assert image.compiled == compiled
    assert compiled.read_bytes() == whole


def test_a_truncated_compiled_image_is_compiled_again(load):
    compiled = load()[0].compiled
    whole = compiled.read_bytes()
    compiled.unlink()
    compiled.write_bytes(whole[: len(whole) // 2])
    assert load()[1]
    assert compiled.read_bytes() == whole


@pytest.mark.parametrize("is_known", [True, False])
def test_code_that_somebody_put_into_the_cache_is_not_mapped(load, tmp_path, monkeypatch, is_known):
    """The whole and valid code of another component, with the times of the one it replaces."""
    if is_known:
        age(monkeypatch)
    foreign = tmp_path / "foreign.wasm"
    foreign.write_bytes(wasmtime.wat2wasm("(component (core module))"))
    note(foreign)
    theirs = load_image(foreign, cache=tmp_path / "a", proofs=tmp_path / "b").compiled.read_bytes()
    load()
    compiled = load()[0].compiled
    ours, times = compiled.read_bytes(), compiled.stat()
    compiled.unlink()
    compiled.write_bytes(theirs)
    os.utime(compiled, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert load()[1]
    assert compiled.read_bytes() == ours
    assert not load()[1]


def test_one_byte_changed_in_place_is_noticed(load, monkeypatch):
    age(monkeypatch)
    load()
    compiled = load()[0].compiled
    whole = compiled.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    times = compiled.stat()
    with compiled.open("r+b") as file:
        file.write(changed)
    os.utime(compiled, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert load()[1]
    assert compiled.read_bytes() == whole


def test_a_settled_file_is_known_without_being_hashed_again(load, monkeypatch):
    age(monkeypatch)
    load()
    assert not load()[1]
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert not load()[1]


def test_a_file_that_was_just_written_is_hashed_until_it_has_settled(load, proofs, monkeypatch):
    load()
    load()
    (proof,) = proofs.glob("*.json")
    assert json.loads(proof.read_text())["identity"] == ""
    age(monkeypatch)
    load()
    assert json.loads(proof.read_text())["identity"] != ""


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"sha256": 1, "identity": ""}', '{"sha256": "0", "more": ""}'])
def test_without_its_proof_a_compiled_image_is_compiled_again(load, proofs, text):
    load()
    (proof,) = proofs.glob("*.json")
    proof.unlink()
    if text is not None:
        proof.write_text(text)
    assert load()[1]
    assert not load()[1]


def test_a_process_with_another_data_folder_leaves_the_file_that_it_would_write(component, cache, tmp_path):
    file = load_image(component, cache=cache, proofs=tmp_path / "one").file
    assert load_image(component, cache=cache, proofs=tmp_path / "two").file == file
    assert file.is_unchanged()
    file.path.write_bytes(b"something else")
    assert load_image(component, cache=cache, proofs=tmp_path / "three").file != file
    assert not file.is_unchanged()


def test_a_link_in_the_cache_is_not_followed(load, tmp_path):
    compiled = load()[0].compiled
    compiled.rename(tmp_path / "elsewhere")
    compiled.symlink_to(tmp_path / "elsewhere")
    assert load()[1]
    assert not compiled.is_symlink()


def test_what_changes_while_it_is_mapped_is_not_used(load, monkeypatch):
    """Between the check and the mapping the file is another one: what was mapped is dropped."""
    file = load()[0].file
    found = iter([file.identity, "another"])
    monkeypatch.setattr(compiled_images, "identity", lambda _path: next(found))
    assert compiled_images.map_file(file) is None


def test_the_folder_of_proofs_is_private(component, cache, proofs):
    load_image(component, cache=cache, proofs=proofs)
    assert stat.S_IMODE(proofs.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in proofs.glob("*.json")} == {0}


def test_another_component_is_another_file(component, cache, proofs, tmp_path):
    other = tmp_path / "other.wasm"
    other.write_bytes(wasmtime.wat2wasm("(component (core module))"))
    note(other)
    assert (
        load_image(component, cache=cache, proofs=proofs).compiled
        != load_image(other, cache=cache, proofs=proofs).compiled
    )
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("missing", ["small.wasm", "small.json"])
def test_a_missing_image_says_how_to_get_it(component, cache, proofs, missing):
    component.with_name(missing).unlink()
    with pytest.raises(ImageError) as caught:
        load_image(component, cache=cache, proofs=proofs)
    remedy = "build it again with `codemode image build`"
    assert str(caught.value) == f"the guest image small.wasm is missing or has no note beside it: {remedy}"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"sha256": 5}'])
def test_an_unreadable_note_is_a_missing_image(component, cache, proofs, text):
    component.with_suffix(".json").write_text(text)
    with pytest.raises(ImageError, match="is missing or has no note"):
        load_image(component, cache=cache, proofs=proofs)


def test_a_damaged_image_is_not_compiled(component, cache, proofs):
    component.write_bytes(component.read_bytes() + b"\x00")
    with pytest.raises(ImageError) as caught:
        load_image(component, cache=cache, proofs=proofs)
    assert str(caught.value) == "the guest image small.wasm is damaged: build it again with `codemode image build`"
    assert list(cache.iterdir()) == []


def test_an_image_that_is_no_component_says_that_it_can_not_be_compiled(component, cache, proofs):
    component.write_bytes(b"\x00asm\x01\x00\x00\x00")
    note(component)
    with pytest.raises(ImageError, match=r"^wasmtime [0-9.]+ cannot compile the guest image: build it"):
        load_image(component, cache=cache, proofs=proofs)


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        ({"cache"}, "the image cache .* cannot be used .*: set XDG_CACHE_HOME elsewhere"),
        ({"proofs"}, "the data folder .* cannot be used .*: set XDG_DATA_HOME elsewhere"),
        (
            {"cache", "proofs"},
            "the image cache .*: set XDG_CACHE_HOME elsewhere; the data .*: set XDG_DATA_HOME elsewhere",
        ),
    ],
)
def test_without_its_folders_an_image_is_compiled_for_this_process_alone(component, tmp_path, spoiled, said):
    (tmp_path / "file").write_text("in the way")
    places = {name: tmp_path / ("file" if name in spoiled else "new") / name for name in ("cache", "proofs")}
    told = []

    @contextlib.contextmanager
    def show(unkept):
        told.append(unkept)
        yield

    image = load_image(component, **places, compiling=show)
    assert re.fullmatch(said, image.unkept)
    assert told == [image.unkept]
    assert list(tmp_path.rglob("*.cwasm")) == []
    assert compiled_images.map_file(image.file) is not None


@pytest.fixture
def apart(component, tmp_path, monkeypatch):
    """Loads an image that no folder can keep, with a folder for temporary files of the test's own."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    def load():
        return load_image(component, cache=tmp_path / "file" / "cache", proofs=tmp_path / "proofs")

    return load


def test_what_is_compiled_for_this_process_alone_lies_nowhere_and_goes_with_the_image(apart, tmp_path):
    image = apart()
    assert list((tmp_path / "temporary").iterdir()) == []
    descriptor = image.file.descriptor
    assert descriptor is not None
    os.fstat(descriptor)
    del image
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.skipif(sys.platform != "linux", reason="files in memory are Linux's")
def test_what_is_compiled_for_this_process_alone_can_not_be_changed(apart):
    image = apart()
    file = image.file
    with pytest.raises(PermissionError), file.path.open("r+b", buffering=0) as opened:
        opened.write(b"x")
    with pytest.raises(PermissionError):
        os.truncate(file.path, 0)
    assert compiled_images.map_file(file) is not None


def test_code_whose_proof_is_out_of_reach_is_not_mapped(load, proofs):
    kept, _ = load()
    assert kept.unkept == ""
    for proof in proofs.glob("*.json"):
        proof.unlink()
    proofs.rename(proofs.with_name("elsewhere"))
    proofs.write_text("in the way")
    image, is_compiled = load()
    assert is_compiled
    assert image.compiled != kept.compiled


@pytest.mark.skipif(os.name != "posix", reason="Windows sets no such limits")
def test_without_any_room_for_it_an_image_says_what_to_set(apart):
    import resource  # noqa: PLC0415  # Windows has none

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        with pytest.raises(ImageError, match=r"set XDG_CACHE_HOME elsewhere; nor is there room .* \(File too large\)$"):
            apart()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert apart().unkept != ""


def test_proofs_that_can_not_be_written_again_still_hold(load, monkeypatch):
    load()
    age(monkeypatch)

    def full(*_):
        raise ImageError("read-only")

    monkeypatch.setattr(compiled_images, "write_private", full)
    image, is_compiled = load()
    assert not is_compiled
    assert image.unkept == ""


def test_processes_that_compile_at_once_all_end_up_with_a_whole_image(component, cache, proofs):
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=load_image, args=(component,), kwargs={"cache": cache, "proofs": proofs})
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert [path.suffix for path in cache.iterdir()] == [".cwasm"]
    load_image(component, cache=cache, proofs=proofs)


ENDS_WHILE_IT_WRITES = """
import atexit, os, pathlib, sys, threading
from sandbox.compiled import write_private
is_written, ends, replace = threading.Event(), threading.Event(), os.replace
def replace_when_it_ends(*paths):
    is_written.set()
    ends.wait()
    replace(*paths)
os.replace = replace_when_it_ends
threading.Thread(target=write_private, args=(pathlib.Path(sys.argv[1]), b"whole"), daemon=True).start()
is_written.wait()
atexit.register(ends.set)
"""


def test_a_process_that_ends_while_a_thread_writes_a_file_leaves_it_whole(tmp_path):
    place = tmp_path / "file"
    subprocess.run([sys.executable, "-c", ENDS_WHILE_IT_WRITES, str(place)], check=True, timeout=120)  # noqa: S603
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"whole")]


@pytest.mark.anyio
@pytest.mark.skipif(os.name != "posix", reason="there are no workers on Windows")
async def test_a_worker_maps_no_other_file_than_the_one_that_was_proven(image):
    worker = WorkerProcess(CompiledFile(image.compiled, image.file.identity + "0"))
    with pytest.raises(WorkerError, match="ended while it started"):
        await worker.ready()
    control = WorkerProcess(image.file)
    await control.ready()
    control.kill()


def test_the_installed_image_is_the_one_that_its_note_names(image):
    assert image.digest == component_digest()
