"""Makes recording.jsonl anew: `uv run python examples/history/record.py [FILE]`.

The recording is of report.py in a repository of four commits that are the same each time. It is due when the guest
image has changed so that the script takes other steps; `codemode replay` says when. The README's quick start installs
what it needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SERVERS = HERE.parent / "servers"
CODEMODE = Path(sys.executable).with_name("codemode")
ALLOW = ("--allow", "git.git_log", "--allow", "git.git_show", "--allow", "memory.*", "--allow", "filesystem.*")
DATE = "2026-01-05T10:00:00+00:00"
COMMITS = (
    ("Ada", "Begin a list", {"list.txt": "one\ntwo\n"}),
    ("Bob", "Add a third item and a page about it", {"list.txt": "one\ntwo\nthree\n", "README.md": "# List\n"}),
    ("Ada", "Correct the third item", {"list.txt": "one\ntwo\nfour\n"}),
    (
        "Ada",
        "Say what the list is of",
        {"list.txt": "one\ntwo\nfour\nfive\n", "README.md": "# List\n\nOf numbers.\n"},
    ),
)


def main() -> None:
    """Make the repository, run the script in it, and export what was recorded."""
    output = Path(*sys.argv[1:2] or [HERE / "recording.jsonl"])
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "repository"
        make(repository)
        own = {"CODEMODE_STORE": str(Path(folder) / "broker.sqlite3")}
        config = repository / "examples" / "history" / "mcp.json"
        script = repository / "examples" / "history" / "report.py"
        run(CODEMODE, "run", script, "--config", config, *ALLOW, cwd=repository, **own)
        run(CODEMODE, "recordings", "export", "last", "--output", output, cwd=Path.cwd(), **own)


def make(repository: Path) -> None:
    """Make a repository with the example in it, which is no part of its history."""
    run("git", "init", "--quiet", repository, cwd=HERE)
    for author, subject, files in COMMITS:
        for name, text in files.items():
            (repository / name).write_text(text)
        run("git", "add", "--", *files, cwd=repository)
        who = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", author), ("EMAIL", f"{author}@example.org"), ("DATE", DATE))
        }
        run("git", "commit", "--quiet", "--no-gpg-sign", "-m", subject, cwd=repository, **who)
    shutil.copytree(HERE, repository / "examples" / "history", ignore=shutil.ignore_patterns("*.jsonl", "report.md"))
    (repository / "examples" / "servers").symlink_to(SERVERS, target_is_directory=True)


def run(*command: str | Path, cwd: Path, **environment: str) -> None:
    """Run a command; what it prints is shown, and its failure ends this program."""
    subprocess.run(command, cwd=cwd, env=os.environ | environment, check=True)  # noqa: S603  # our own commands


if __name__ == "__main__":
    main()
