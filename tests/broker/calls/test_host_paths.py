"""Paths of the host in errors."""

import pytest

from broker.calls.host_paths import HostPaths


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
    assert HostPaths().hidden(text) == shown


@pytest.mark.parametrize(
    "text",
    ["GET https://example.com/a/b/c failed", "no route /health", "use 1/2 or a/b/c", "ratio 3/4/5", "'and/or/not'"],
)
def test_what_is_no_path_of_the_host_stays(text):
    assert HostPaths().hidden(text) == text


def test_a_path_that_the_script_passed_stays():
    text = "Access denied: /etc/app/passwd not in /home/ada/project"
    assert HostPaths({"path": "/etc/app/passwd"}).hidden(text) == "Access denied: /etc/app/passwd not in <path>/project"


def test_texts_inside_details_are_changed_too():
    details = {"server": "fs", "content": [{"type": "text", "text": "no /home/ada/x"}], "structured_content": None}
    assert HostPaths().hidden_in(details) == {
        "server": "fs",
        "content": [{"type": "text", "text": "no <path>/x"}],
        "structured_content": None,
    }


class Read(dict[str, str]):
    """Arguments that count how often they are read as a whole."""

    times = 0

    def items(self):
        self.times += 1
        return super().items()


def test_the_arguments_are_read_once_for_all_texts_of_a_failure():
    arguments = Read(path="/named/by/script")
    paths = HostPaths(arguments)
    details = {"content": [f"/named/by/script and /of/the/host{number}" for number in range(50)]}
    assert paths.hidden_in(details)["content"][-1] == "/named/by/script and <path>/host49"
    assert arguments.times == 1


def test_of_very_many_paths_all_but_the_first_are_taken_for_the_hosts():
    named = [f"/named/by/script{number}" for number in range(300)]
    shown = HostPaths({"paths": named}).hidden(" ".join(named)).split()
    assert (shown[0], shown[-1]) == (named[0], "<path>/script299")
