"""A compiled image is read in before it is mapped: in turn, not by page faults."""

from __future__ import annotations

import mmap
import os
import sys
from typing import TYPE_CHECKING

import pytest

from sandbox.compiled import CompiledFile, identity, map_file
from sandbox.page_cache import is_in_memory, read_in

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what is in memory")


def given_up(path: Path) -> int:
    """Returns a descriptor of a file that the system has been asked to keep in memory no longer."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    if is_in_memory(descriptor):
        os.close(descriptor)
        pytest.skip("the folder of temporary files lies in memory")
    return descriptor


def test_a_file_that_is_not_in_memory_is_read_in(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(5_000_001))
    descriptor = given_up(path)
    read_in(path)
    assert is_in_memory(descriptor, mmap.PAGESIZE)
    os.close(descriptor)


def test_a_compiled_image_is_in_memory_once_it_is_mapped(image, tmp_path):
    path = tmp_path / "image.cwasm"
    path.write_bytes(image.compiled.read_bytes())
    descriptor = given_up(path)
    found = identity(path)
    assert found is not None
    assert map_file(CompiledFile(path, found)) is not None
    assert is_in_memory(descriptor, mmap.PAGESIZE)
    os.close(descriptor)


def test_a_file_that_is_not_there_is_left_to_who_maps_it(tmp_path):
    read_in(tmp_path / "file")
