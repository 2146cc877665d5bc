import os
import sys

import pytest

from sandbox.nameless_file import nameless_file

sealed = pytest.mark.skipif(sys.platform != "linux", reason="files in memory are Linux's")


def test_it_holds_its_content_and_has_no_name():
    with nameless_file("compiled", b"code") as file:
        assert os.pread(file.fileno(), 10, 0) == b"code"
        assert os.fstat(file.fileno()).st_nlink == 0


@sealed
def test_nobody_who_has_a_descriptor_of_it_can_change_it():
    with nameless_file("compiled", b"code") as file:
        again = os.dup(file.fileno())
        try:
            with pytest.raises(PermissionError):
                os.pwrite(again, b"evil", 0)
            with pytest.raises(PermissionError):
                os.ftruncate(again, 2)
        finally:
            os.close(again)
        assert os.pread(file.fileno(), 10, 0) == b"code"


@sealed
def test_one_that_is_written_later_keeps_its_size():
    with nameless_file("computing", bytes(8), is_written=True) as file:
        os.pwrite(file.fileno(), b"12345678", 0)
        for size in (4, 16):
            with pytest.raises(PermissionError):
                os.ftruncate(file.fileno(), size)
        assert os.pread(file.fileno(), 16, 0) == b"12345678"
