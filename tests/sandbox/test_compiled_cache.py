"""Compiled images that nobody uses go; one that somebody uses stays."""

from __future__ import annotations

import gc
import os
import shutil
import time

import pytest

from sandbox.compiled import CompiledImage
from sandbox.compiled_cache import Use, cached_images, prune, remove_cached
from sandbox.errors import ImageError

DAY = 86_400


@pytest.fixture
def cache(tmp_path):
    for name in ("cache", "proofs"):
        (tmp_path / name).mkdir()
    return tmp_path


def compiled(cache, key, *, days_ago, wasmtime=None):
    image = CompiledImage(cache / "cache" / f"{key}.cwasm", cache / "proofs")
    image.write(key.encode())
    then = time.time() - days_ago * DAY
    os.utime(image.path, (then, then))
    if wasmtime is not None:
        image.use.write_text(wasmtime)
        os.utime(image.use, (then, then))
    return image


def keys(cache):
    return [one.key for one in cached_images(cache / "cache", cache / "proofs")]


def test_what_nobody_used_for_long_goes_and_the_rest_stays(cache):
    compiled(cache, "fresh", days_ago=1)
    compiled(cache, "month", days_ago=29)
    old = compiled(cache, "old", days_ago=31)
    compiled(cache, "other", days_ago=2, wasmtime="0.0.1")
    compiled(cache, "other-today", days_ago=0.5, wasmtime="0.0.1")
    prune(cache / "cache", cache / "proofs")
    assert keys(cache) == ["other-today", "fresh", "month"]
    assert not old.path.exists()


def test_an_old_image_that_is_used_stays_until_its_user_is_gone(cache):
    image = compiled(cache, "old", days_ago=31)
    use = Use(image)
    os.utime(image.use, (0, 0))
    prune(cache / "cache", cache / "proofs")
    assert keys(cache) == ["old"]
    with pytest.raises(ImageError, match="is in use"):
        remove_cached("old", cache / "cache", cache / "proofs")
    del use
    gc.collect()
    prune(cache / "cache", cache / "proofs")
    assert keys(cache) == ["old"], "it was used until now"
    os.utime(image.use, (0, 0))
    prune(cache / "cache", cache / "proofs")
    assert keys(cache) == []


def test_using_an_image_makes_it_young_again(cache):
    image = compiled(cache, "old", days_ago=31)
    Use(image)
    prune(cache / "cache", cache / "proofs")
    assert keys(cache) == ["old"]


def test_an_image_is_removed_by_its_key_and_no_other_file_is(cache):
    compiled(cache, "one", days_ago=1)
    remove_cached("one", cache / "cache", cache / "proofs")
    assert keys(cache) == []
    for key in ("one", "../proofs/one"):
        with pytest.raises(ImageError, match="there is no compiled image"):
            remove_cached(key, cache / "cache", cache / "proofs")


def test_a_damaged_note_or_none_keeps_nothing_from_being_listed_and_removed(cache):
    compiled(cache, "damaged", days_ago=1).use.write_bytes(b"\xff")
    prune(cache / "cache", cache / "proofs")
    assert keys(cache) == ["damaged"]
    shutil.rmtree(cache / "proofs")
    remove_cached("damaged", cache / "cache", cache / "proofs")
    assert keys(cache) == []


def test_what_a_killed_writer_left_goes_with_the_next_one(cache):
    image = compiled(cache, "one", days_ago=1)
    (cache / "cache" / "oneabc.partial").write_bytes(b"half")
    with image.locked():
        image.remove_partial()
    assert [path.name for path in (cache / "cache").iterdir()] == ["one.cwasm"]
