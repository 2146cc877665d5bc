"""A compiled image is read in before it is mapped: in turn, not by page faults."""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox.compiled import CompiledFile, identity, map_file
from sandbox.page_cache import is_in_memory, read_in

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what is in memory")


def write_around(path: Path, content: bytes) -> None:
    """Writes a file so that nothing of it lies in memory: what is asked to be given up is given up in part only."""
    with mmap.mmap(-1, -(-len(content) // mmap.PAGESIZE) * mmap.PAGESIZE) as aligned:
        aligned[: len(content)] = content
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        except OSError:
            pytest.skip("the file system of temporary files cannot be written around the page cache")
        assert os.write(descriptor, aligned) == len(aligned)
        os.ftruncate(descriptor, len(content))
        is_kept = is_in_memory(descriptor)
        os.close(descriptor)
    if is_kept:
        pytest.skip("the file system of temporary files lies in memory")


@contextmanager
def bytes_read() -> Iterator[list[int]]:
    """Counts what this thread reads from descriptors; what page faults read in is not counted."""
    counted = [-_bytes_read_so_far()]
    yield counted
    counted[0] += _bytes_read_so_far()


def _bytes_read_so_far() -> int:
    return int(Path("/proc/thread-self/io").read_text().partition("rchar: ")[2].partition("\n")[0])


def test_a_file_that_is_not_in_memory_is_read_in(tmp_path):
    path = tmp_path / "file"
    write_around(path, bytes(5_000_001))
    with bytes_read() as counted:
        read_in(path)
    assert counted[0] >= 5_000_001


def test_a_file_that_is_in_memory_is_not_read_again(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(5_000_001))
    with bytes_read() as counted:
        read_in(path)
    assert counted[0] < 5_000_001


def test_a_compiled_image_is_read_in_before_it_is_mapped(image, tmp_path):
    path = tmp_path / "image.cwasm"
    write_around(path, image.compiled.read_bytes())
    found = identity(path)
    assert found is not None
    with bytes_read() as counted:
        assert map_file(CompiledFile(path, found)) is not None
    assert counted[0] >= path.stat().st_size


def test_a_file_that_is_not_there_is_left_to_who_maps_it(tmp_path):
    read_in(tmp_path / "file")
