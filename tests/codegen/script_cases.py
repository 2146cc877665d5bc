"""Scripts in text files, each under a line `### name`; for a broken one ` | line | code | words of its message`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent / "scripts"


@dataclass(frozen=True)
class ScriptCase:
    """One script; `line`, `code` and `words` are of the diagnostic it must give, if any."""

    name: str
    script: str
    line: int = 0
    code: str = ""
    words: str = ""


def correct_scripts() -> list[ScriptCase]:
    """Return the scripts in which nothing may be found."""
    return [
        ScriptCase(head, script)
        for name in ("correct_a.txt", "correct_b.txt", "correct_c.txt", "correct_d.txt", "correct_e.txt")
        for head, script in _sections((_FOLDER / name).read_text(encoding="utf-8"))
    ]


def broken_scripts() -> list[ScriptCase]:
    """Return the scripts with one mistake each."""
    cases = []
    for head, script in _sections((_FOLDER / "broken.txt").read_text(encoding="utf-8")):
        name, line, code, words = (part.strip() for part in head.split("|"))
        cases.append(ScriptCase(name, script, int(line), code, words))
    return cases


def _sections(text: str) -> list[tuple[str, str]]:
    sections = []
    for part in ("\n" + text).split("\n### ")[1:]:
        head, _, script = part.partition("\n")
        sections.append((head.strip(), script))
    return sections
