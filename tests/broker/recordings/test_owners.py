"""Whether the process that a run belongs to still lives, as others find out."""

from __future__ import annotations

import pytest

from broker.errors import StoreError
from broker.recordings.keeping.owners import Owner, lives


def test_a_process_lives_until_it_gives_its_lock_back(tmp_path):
    owner = Owner(tmp_path)
    assert lives(tmp_path, owner.name)
    owner.close()
    assert not lives(tmp_path, owner.name)


def test_what_a_process_that_died_has_left_is_removed(tmp_path):
    (tmp_path / "1-ab").touch()
    assert not lives(tmp_path, "1-ab")
    assert list(tmp_path.iterdir()) == []


def test_a_process_of_which_nothing_can_be_found_out_counts_as_living(tmp_path):
    (tmp_path / "1-ab").symlink_to("1-ab")
    assert lives(tmp_path, "1-ab")


@pytest.mark.parametrize("name", ["", "../beside", "/beside", "nobody", "no\0body"])
def test_a_name_that_no_process_has_lives_nowhere_and_removes_nothing(tmp_path, name):
    (tmp_path / "beside").touch()
    (tmp_path / "owners").mkdir()
    assert not lives(tmp_path / "owners", name)
    assert not lives(None, name)
    assert (tmp_path / "beside").exists()


def test_a_file_in_the_place_of_the_folder_is_named_with_what_to_do(tmp_path):
    (tmp_path / "owners").touch()
    with pytest.raises(StoreError, match=r"owners cannot be used: File exists; .* use another file for the store"):
        Owner(tmp_path / "owners")
