"""Reads this repository's history, keeps it as a knowledge graph, and writes a report from the graph.

git has the history, memory the graph (`out/graph.jsonl`), filesystem the report (`out/report.md`). However
long the history is, at most the bounds below are read; one commit is enough for a report. A second run
replaces the graph of the first.
"""

import asyncio
import itertools
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tools import ToolError, filesystem, git, memory

COMMITS = 30
FILES = 24
PEOPLE = 12
REPOSITORY = "."  # the git server was started in the repository, so a script needs no path of the machine

LOG_ENTRY = re.compile(r"^Commit: ([0-9a-f]{40,64})\nAuthor: (.*)\nDate: (.*)\nMessage: (.*)", re.MULTILINE)
HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


@dataclass
class Commit:
    sha: str
    author: str
    date: str
    subject: str
    changes: dict[str, tuple[int, int]] = field(default_factory=dict)  # path -> lines added, lines removed

    @property
    def entity(self):
        return f"commit {self.sha[:12]}"


def read_changes(patch):
    """Counts added and removed lines for each file. The lines of a hunk are taken by the hunk's own count, so
    that a changed line which itself looks like a patch is not read as one."""
    changes, path, old_path, old, new = {}, None, None, 0, 0
    for line in patch.split("\n"):
        if path is not None and (old > 0 or new > 0):
            added, removed = changes[path]
            if line.startswith("+"):
                new, added = new - 1, added + 1
            elif line.startswith("-"):
                old, removed = old - 1, removed + 1
            elif not line.startswith("\\"):
                old, new = old - 1, new - 1
            changes[path] = (added, removed)
        elif line.startswith("--- "):
            old_path = line[4:].removeprefix("a/")
        elif line.startswith("+++ ") and old_path is not None:
            path = old_path if line[4:] == "/dev/null" else line[4:].removeprefix("b/")
            changes.setdefault(path, (0, 0))
            old_path = None
        elif path is not None and (hunk := HUNK.match(line)):
            old, new = (int(count) if count is not None else 1 for count in hunk.groups())
    return changes


async def read_commit(commit):
    """Adds what a commit changed; one that cannot be shown keeps no changes, and the rest go on."""
    try:
        commit.changes = read_changes(await git.git_show(repo_path=REPOSITORY, revision=commit.sha))
    except ToolError as error:
        print(f"{commit.entity} not read: {str(error).splitlines()[0]}")
    return commit


async def read_history():
    log = await git.git_log(repo_path=REPOSITORY, max_count=COMMITS)
    commits = [Commit(*entry) for entry in LOG_ENTRY.findall(log)]
    return await asyncio.gather(*(read_commit(commit) for commit in commits))


async def forget_earlier_graph():
    graph = await memory.read_graph()
    ours = [entity["name"] for entity in graph["entities"] if entity["entityType"] in {"commit", "file", "person"}]
    if ours:
        await memory.delete_entities(entityNames=ours)


async def add_entity(name, kind, observations, relations):
    """Adds one entity and its relations. The memory server rewrites its file on each of these calls and does
    not lock it, so they go one after another."""
    await memory.create_entities(entities=[{"name": name, "entityType": kind, "observations": observations}])
    if relations:
        await memory.create_relations(
            relations=[{"from": start, "relationType": verb, "to": end} for start, verb, end in relations]
        )


async def build_graph(commits):
    touched, written = defaultdict(list), defaultdict(list)
    for commit in commits:
        written[commit.author].append(commit)
        for path in commit.changes:
            touched[path].append(commit)
    files = sorted(touched, key=lambda path: (-len(touched[path]), path))[:FILES]
    people = sorted(written, key=lambda name: (-len(written[name]), name))[:PEOPLE]

    for commit in commits:
        added = sum(change[0] for change in commit.changes.values())
        removed = sum(change[1] for change in commit.changes.values())
        size = f"{len(commit.changes)} files, {added} lines added, {removed} removed"
        await add_entity(commit.entity, "commit", [commit.subject, commit.date, size], [])
    for path in files:
        added = sum(commit.changes[path][0] for commit in touched[path])
        removed = sum(commit.changes[path][1] for commit in touched[path])
        relations = [(commit.entity, "changed", f"file {path}") for commit in touched[path]]
        await add_entity(f"file {path}", "file", [f"{added} lines added", f"{removed} lines removed"], relations)
    for name in people:
        relations = [(f"person {name}", "wrote", commit.entity) for commit in written[name]]
        await add_entity(f"person {name}", "person", [f"{len(written[name])} commits"], relations)
    return files, people


async def ask_graph(name):
    """What the graph knows about one entity: itself, and the other ends of its relations."""
    found = await memory.open_nodes(names=[name])
    ends = [relation["from"] if relation["to"] == name else relation["to"] for relation in found["relations"]]
    return found["entities"][0], ends


def often_together(commits, files):
    pairs = Counter()
    for commit in commits:
        pairs.update(itertools.combinations(sorted(set(files) & set(commit.changes)), 2))
    return [(pair, count) for pair, count in pairs.most_common(5) if count > 1]


def cell(text):
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text)


def write_table(heading, columns, rows):
    yield from ("", f"## {heading}", "", f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns))
    for row in rows:
        yield f"| {' | '.join(cell(str(value)) for value in row)} |"


def write_report(commits, files, people, together):
    yield "# History of this repository"
    yield ""
    yield f"The latest {len(commits)} commits, {commits[-1].date} to {commits[0].date}."
    yield from write_table("People", ["Who", "Commits"], [(entity["name"][7:], len(ends)) for entity, ends in people])
    yield from write_table(
        "Files changed most",
        ["File", "Commits", "Lines"],
        [(entity["name"][5:], len(ends), ", ".join(entity["observations"])) for entity, ends in files],
    )
    if together:
        yield from write_table(
            "Files changed together",
            ["File", "File", "Commits"],
            [(first, second, count) for (first, second), count in together],
        )
    yield from write_table(
        "Commits",
        ["Commit", "Date", "Author", "Subject"],
        [(commit.sha[:12], commit.date, commit.author, commit.subject) for commit in commits],
    )


async def main():
    commits, _ = await asyncio.gather(read_history(), forget_earlier_graph())
    if not commits:
        raise SystemExit("this repository has no commits yet")
    files, people = await build_graph(commits)

    about_files, about_people = await asyncio.gather(
        asyncio.gather(*(ask_graph(f"file {path}") for path in files)),
        asyncio.gather(*(ask_graph(f"person {name}") for name in people)),
    )
    report = "\n".join(write_report(commits, about_files, about_people, often_together(commits, files))) + "\n"
    await filesystem.write_file(path="report.md", content=report)
    written, graph = await asyncio.gather(filesystem.read_text_file(path="report.md"), memory.read_graph())
    assert written["content"] == report

    authors = "1 author" if len(people) == 1 else f"{len(people)} authors"
    print(f"history: {len(commits)} commits, {authors}, {len(files)} of the files they changed")
    print(f"graph:   {len(graph['entities'])} entities, {len(graph['relations'])} relations (graph.jsonl)")
    print(f"report:  {len(report.splitlines())} lines (report.md)")


await main()
