"""The README's example, against its real servers: is what it writes true?"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODEMODE = Path(sys.executable).with_name("codemode")
SERVERS = ("node_modules", ".venv")
ALLOW = ("--allow", "git.git_log", "--allow", "git.git_show", "--allow", "memory.*", "--allow", "filesystem.*")
WHO = ("-c", "user.name=Ada | Co", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


@pytest.fixture(autouse=True)
def own_store(data_home, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", data_home)


def git(folder, *arguments):
    finished = subprocess.run(  # noqa: S603  # git of this machine
        ["git", *WHO, *arguments],  # noqa: S607
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return finished.stdout


def with_example(repository):
    """Adds the example to a repository, with the servers that the quick start installed."""
    needs_servers()
    history = repository / "examples" / "history"
    shutil.rmtree(history, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / "history", history, ignore=shutil.ignore_patterns("report.md", "graph.jsonl"))
    servers = repository / "examples" / "servers"
    servers.mkdir(exist_ok=True)
    for name in SERVERS:
        (servers / name).symlink_to(ROOT / "examples" / "servers" / name)
    return repository


def run_example(repository):
    finished = subprocess.run(  # noqa: S603  # our own command
        [CODEMODE, "run", "examples/history/report.py", "--config", "examples/history/mcp.json", *ALLOW],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"COLUMNS": "120"},
    )
    assert finished.returncode == 0, finished.stderr
    return finished


def graph_of(repository):
    lines = (repository / "examples" / "history" / "out" / "graph.jsonl").read_text().splitlines()
    items = [json.loads(line) for line in lines]
    entities = {item["name"]: item for item in items if item["type"] == "entity"}
    relations = {(item["from"], item["relationType"], item["to"]) for item in items if item["type"] == "relation"}
    assert len(entities) + len(relations) == len(items), "something is in the graph twice"
    return entities, relations


def calls_in(finished):
    [count] = re.findall(r"(\d+) tool calls?\b", finished.stderr)
    return int(count)


def expected_relations(repository, commits, files, people):
    found = set()
    for line in git(repository, "log", f"-{commits}", "--format=%H\t%an").splitlines():
        sha, author = line.split("\t")
        entity = f"commit {sha[:12]}"
        if f"person {author}" in people:
            found.add((f"person {author}", "wrote", entity))
        changed = git(repository, "show", "--first-parent", "-M", "--format=", "--name-only", "-z", sha).split("\0")
        found |= {(entity, "changed", f"file {path}") for path in changed if f"file {path}" in files}
    return found


def assert_true_to_history(repository, finished):
    entities, relations = graph_of(repository)
    kinds = Counter(entity["entityType"] for entity in entities.values())
    in_history = int(git(repository, "rev-list", "--count", "HEAD"))
    assert kinds["commit"] == min(in_history, 30)
    assert relations == expected_relations(repository, kinds["commit"], entities, entities)

    report = (repository / "examples" / "history" / "out" / "report.md").read_text()
    for sha in git(repository, "log", f"-{kinds['commit']}", "--format=%h", "--abbrev=12").split():
        assert sha in report
    assert f"{kinds['commit']} commits" in finished.stdout
    assert f"{len(entities)} entities, {len(relations)} relations" in finished.stdout


@pytest.fixture
def new_repository(tmp_path):
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    return tmp_path


def commit(repository, subject, files):
    for name, text in files.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(repository, "add", "--", *files)
    git(repository, "commit", "--quiet", "-m", subject)


def test_this_repositorys_own_history_takes_more_than_fifty_calls(tmp_path):
    git(tmp_path, "clone", "--quiet", "--no-hardlinks", str(ROOT), "clone")
    repository = with_example(tmp_path / "clone")
    first = run_example(repository)
    assert_true_to_history(repository, first)
    assert calls_in(first) >= 50
    second = run_example(repository)
    assert_true_to_history(repository, second)


def test_one_commit_is_enough(new_repository):
    commit(new_repository, "First", {"a.txt": "1\n2\n", "b/c.txt": "x"})
    repository = with_example(new_repository)
    assert_true_to_history(repository, run_example(repository))
    entities, _ = graph_of(repository)
    assert entities["file a.txt"]["observations"] == ["2 lines added", "0 lines removed"]


def test_a_changed_line_that_looks_like_a_patch_is_counted_as_a_line(new_repository):
    commit(new_repository, "First", {"a.txt": "-- a/not-a-file\nlast\n"})
    commit(new_repository, "Commit: " + "0" * 40, {"a.txt": "++ b/not-a-file\nlast\n"})
    repository = with_example(new_repository)
    assert_true_to_history(repository, run_example(repository))
    entities, _ = graph_of(repository)
    assert entities["file a.txt"]["observations"] == ["3 lines added", "1 lines removed"]


def test_a_long_history_is_bounded(new_repository):
    for number in range(40):
        commit(new_repository, f"Change {number}", {f"file{number}.txt": f"{number}\n", "all.txt": f"{number}\n"})
    repository = with_example(new_repository)
    finished = run_example(repository)
    assert_true_to_history(repository, finished)
    entities, relations = graph_of(repository)
    assert Counter(entity["entityType"] for entity in entities.values()) == {"commit": 30, "file": 24, "person": 1}
    assert sum(relation[2] == "file all.txt" for relation in relations) == 30
    assert calls_in(finished) < 200


def needs_servers():
    if missing := [name for name in SERVERS if not (ROOT / "examples" / "servers" / name).exists()]:
        pytest.skip(f"examples/servers has no {' and no '.join(missing)}: run the README's first line")


def test_the_readmes_script_counts_lines():
    needs_servers()
    finished = subprocess.run(  # noqa: S603  # our own command
        [CODEMODE, "run", "examples/added_lines.py", "-c", "examples/history/mcp.json", "--allow", "git.git_[ls]*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert finished.returncode == 0, finished.stderr
    counted = json.loads(finished.stdout)
    newest = git(ROOT, "log", "-20", "--format=%h", "--abbrev=12").split()
    assert list(counted) == newest
    assert all(isinstance(count, int) for count in counted.values())


def test_the_readmes_library_example_makes_its_call():
    needs_servers()
    finished = subprocess.run(  # our own example
        [sys.executable, "examples/library.py"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("completed Commit history:")
    assert finished.stdout.rstrip().endswith("['ok']")


def test_the_script_uses_loops_and_gather():
    source = (ROOT / "examples" / "history" / "report.py").read_text()
    assert "asyncio.gather(" in source
    assert "for commit in commits" in source


def test_the_examples_recording_is_made_anew_by_one_command(tmp_path):
    needs_servers()
    recording = tmp_path / "recording.jsonl"
    subprocess.run([sys.executable, "examples/history/record.py", recording], cwd=ROOT, check=True, timeout=120)  # noqa: S603  # our own command
    finished = subprocess.run(  # noqa: S603  # our own command
        [CODEMODE, "replay", recording, "--script", "examples/history/report.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (finished.returncode, finished.stderr) == (0, "no differences\n")
