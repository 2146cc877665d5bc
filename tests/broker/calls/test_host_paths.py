"""Paths of the host in errors."""

import pytest

from broker.calls.host_paths import hide_host_paths, hide_in_details


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ENOENT: no such file, open '/home/ada/shop/data/graph.tmp'", "ENOENT: no such file, open '<path>/graph.tmp'"),
        ("see file:///srv/app/main.py:12", "see <path>/main.py:12"),
        ("in ~/shop/notes.txt.", "in <path>/notes.txt."),
        (r"cannot open C:\Users\ada\secret.txt", "cannot open <path>/secret.txt"),
        ("folder /home/ada/ is full", "folder <path>/ is full"),
    ],
)
def test_folders_of_the_host_are_left_out_of_an_error(text, shown):
    assert hide_host_paths(text, {}) == shown


@pytest.mark.parametrize(
    "text",
    ["GET https://example.com/a/b/c failed", "no route /health", "use 1/2 or a/b/c", "ratio 3/4/5", "'and/or/not'"],
)
def test_what_is_no_path_of_the_host_stays(text):
    assert hide_host_paths(text, {}) == text


def test_a_path_that_the_script_passed_stays():
    text = "Access denied: /etc/app/passwd not in /home/ada/project"
    assert hide_host_paths(text, {"path": "/etc/app/passwd"}) == "Access denied: /etc/app/passwd not in <path>/project"


def test_texts_inside_details_are_changed_too():
    details = {"server": "fs", "content": [{"type": "text", "text": "no /home/ada/x"}], "structured_content": None}
    assert hide_in_details(details, {}) == {
        "server": "fs",
        "content": [{"type": "text", "text": "no <path>/x"}],
        "structured_content": None,
    }
