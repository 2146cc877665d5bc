"""Folders of a user, made where the umask would leave them open to others."""

from __future__ import annotations

import os
import stat
import sys

import pytest

from sandbox.private_folder import make_private_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")


@pytest.fixture(autouse=True)
def open_umask():
    """Everybody may do everything with what is made, if nothing else is said."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folders_above_are_private_too(tmp_path):
    folder = tmp_path / "share" / "codemode" / "tokens"
    make_private_folder(folder)
    assert [mode(each) for each in (folder, folder.parent, folder.parent.parent)] == [0o700] * 3


def test_what_is_there_is_left_as_it_is(tmp_path):
    (tmp_path / "share").mkdir(mode=0o755)
    make_private_folder(tmp_path / "share" / "codemode")
    make_private_folder(tmp_path / "share" / "codemode")
    assert (mode(tmp_path / "share"), mode(tmp_path / "share" / "codemode")) == (0o755, 0o700)


def test_a_file_in_the_way_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        make_private_folder(tmp_path / "file" / "folder")
