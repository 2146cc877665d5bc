"""Checks a script against the stubs of described tools, before it runs.

Above: the package's public functions. Below: the type checker, and judge.py, which judges its findings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from codegen.checking.checker_input import tools_package
from codegen.checking.judge import alters_results, is_unparsed, mistake_in
from codegen.checking.known_names import functions_by_namespace, known_from
from codegen.checking.place import Place
from codegen.checking.script_text import ScriptText, words_of
from codegen.checking.type_checker import TypeChecker
from codegen.checking.wrong_arguments import said_once
from codegen.errors import CheckerError
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from codegen.checking.known_names import Known
    from codegen.checking.language_server import Finding
    from codegen.checking.mistake import Mistake
    from codegen.stubs.stub import Stub

MAX_DIAGNOSTICS = 20
_MAX_JUDGED = 2 * MAX_DIAGNOSTICS  # one mistake may be two findings
LONGEST_SCRIPT = 100_000
_MAX_FINDINGS = 500
"""Findings that are looked at, certain or not: a hostile script has thousands."""
_MAX_READ = 5_000_000
"""Characters read for all findings together: judging one may read every line of the script."""
_MESSAGE_LENGTH = 300
_HINT_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake in a script, at a line and column of its own, both counted from 1."""

    line: int
    column: int
    code: str
    message: str
    hint: str

    def __str__(self) -> str:
        """Return the mistake on one line."""
        hint = f" ({self.hint})" if self.hint else ""
        return f"line {self.line}:{self.column}: {self.message}{hint} [{self.code}]"


def check(
    script: str,
    stubs: Iterable[Stub],
    *,
    listed: Mapping[str, Iterable[str]] | None = None,
    unimported: Collection[str] = (),
    checker: TypeChecker | None = None,
) -> list[Diagnostic]:
    """Return the mistakes that stop a script, in the order of its lines, at most twenty.

    Top-level `await` and `return` are legal. This process neither parses nor runs the script; `ty` reads it.

    Args:
        script: Python source.
        stubs: The described tools.
        listed: The names of other functions that exist, by namespace; calls to them are not checked.
        unimported: Namespaces that the script may use without an import.
        checker: What reads the script: some 3 ms when it has read one before. Without one, a process is started for
            this check alone, 40 ms.

    Raises:
        CheckerError: If the type checker cannot be run, or not within its bounds. The script may still be correct.
    """
    if len(script) > LONGEST_SCRIPT:
        raise CheckerError(f"the script is longer than {LONGEST_SCRIPT} characters")
    described, words = list(stubs), words_of(script)
    functions = functions_by_namespace(described, listed or {})
    # Most servers are not in a script: what it does not name, it can neither import nor call.
    named = [one for one in described if one.namespace in words and not words.isdisjoint((one.function, *one.types))]
    within = {namespace: words.intersection(names) for namespace, names in functions.items() if namespace in words}
    found = (checker or TypeChecker()).findings(script, tools_package(named, within, unimported))
    if not found:
        return []
    known = replace(
        known_from(named, functions),
        unimported=frozenset(unimported),
        results_altered=any(map(alters_results, found)),
    )
    judged = said_once(list(islice(_mistakes(script, found, known), _MAX_JUDGED)))
    if any(is_unparsed(finding) for finding, _ in judged):
        # Behind such a place, words of prose and of other languages count as names.
        judged = [one for one in judged if one[0].rule != "unresolved-reference"]
    diagnostics: dict[tuple[int, int], Diagnostic] = {}
    for finding, mistake in judged:
        diagnostics.setdefault((finding.line, finding.column), _diagnostic(finding, mistake))
    return list(diagnostics.values())[:MAX_DIAGNOSTICS]


def _mistakes(script: str, found: Iterable[Finding], known: Known) -> Iterator[tuple[Finding, Mistake]]:
    """Yield the findings that are mistakes, in the order of the script, within the bounds on what is read."""
    text = ScriptText(script)
    most = min(_MAX_FINDINGS, _MAX_READ // (len(script) or 1))
    for finding in sorted(found, key=lambda one: (one.line, one.column))[:most]:
        mistake = mistake_in(finding, Place(finding, text), known)
        if mistake is not None:
            yield finding, mistake


def _diagnostic(finding: Finding, mistake: Mistake) -> Diagnostic:
    return Diagnostic(
        line=finding.line,
        column=finding.column,
        code=finding.rule,
        message=one_line(mistake.message, _MESSAGE_LENGTH),
        hint=one_line(mistake.hint, _HINT_LENGTH),
    )
