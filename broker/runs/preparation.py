"""Prepares a script to run: finds the tools that it names, checks its use of them, makes the guest's manifest.

Above: execution.py, and sessions.py for a check alone. Below: the sandbox, which reads scripts, disclosure.py,
manifest.py and script_check.py. The host never parses a script; a guest does, where it does not name its tools in plain
sight.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import anyio

from broker.logging import logger
from broker.runs.hints import call_in_json, is_of_another_language, json_call, sharpened
from broker.runs.manifest import OF_EVERY_SCRIPT, manifest_of
from broker.runs.not_described import NotDescribed
from broker.runs.plain_references import plain_references
from broker.runs.script_check import SYNTAX, CheckedScript, diagnostics_of, stops, unreadable
from broker.texts import check_texts
from broker.texts.call_texts import script_not_described
from broker.tools.spellings import STAND_INS
from codegen import CheckerError
from codegen.normal_form import with_ascii_names
from sandbox import Raised, Stopped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.disclosure.disclosure import Disclosure
    from broker.runs.shared_sandbox import SharedSandbox
    from broker.tools.catalog import Catalog, CatalogEntry
    from codegen import Diagnostic, TypeChecker
    from sandbox import Limits, Reference

_WHOLE_SERVER = {None, "*"}
_WITH_ATTRIBUTE = re.compile(r"(?<![\w.])([^\W\d]\w*)\s*\.")
_IN_TRACEBACK = 'File "{}"'
_CALLED = re.compile(r"(?<![\w.])([^\W\d]\w*)\s*\(")
_IMPORTED = re.compile(r"(?m)^[ \t]*(?:from|import)[ \t]+([^\W\d]\w*)")
_MAX_NAMED = 1_000


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Prepares the scripts of one session."""

    sandbox: SharedSandbox
    disclosure: Disclosure
    checker: TypeChecker

    @property
    def catalog(self) -> Catalog:
        """The tools that scripts may name."""
        return self.disclosure.catalog

    async def check(self, script: str, *, describe_references: bool) -> CheckedScript:
        """Check a script without running it.

        Raises:
            CheckerError: The type checker cannot be run.
        """
        sandbox = await self.sandbox.opened()
        read = await sandbox.references(script, unimported=self._unimported(script))
        if isinstance(read, Raised | Stopped):
            return CheckedScript((unreadable(read, script),))
        found = await self._settled(read)
        if describe_references:
            await self.disclosure.describe(self.named(found))
        manifest = await self.manifest(script, found)
        call = await self._call_in_json(script)
        diagnostics = (call,) if call is not None else await self._diagnostics(script, found, manifest)
        servers = {self.catalog.server_of(reference.namespace) or "" for reference in found}
        upstreams = self.disclosure.upstreams
        down = [name for name in sorted(servers & upstreams.keys()) if upstreams[name].status.problem]
        return CheckedScript(diagnostics, tuple(down))

    async def read(
        self, script: str, filename: str, *, describe_references: bool, limits: Limits | None
    ) -> Sequence[Reference] | NotDescribed | Raised | Stopped:
        """Return what a script names if all of it is described, else why it cannot start; within its run's limits."""
        found = await self._references(script, limits)
        if isinstance(found, Raised | Stopped):
            return _with_filename(found, filename)
        if not found:
            return ()
        found = await self._settled(found)
        # A script that has to fetch descriptions itself is refused only for tools that it spells out; about others the
        # call says so when it is made.
        named = self.named(found) if describe_references else self.spelled_out(found)
        undescribed = [entry for entry in named if not self.disclosure.is_described(entry)]
        if undescribed and not describe_references:
            changed = [text for entry in undescribed if (text := self._change_of(entry))]
            return self._not_described(undescribed, found, changed)
        await self.disclosure.describe(undescribed)
        return found

    async def _references(self, script: str, limits: Limits | None) -> Sequence[Reference] | Raised | Stopped:
        """Return what a script names; a guest reads it, unless all it names are described tools in plain sight.

        Only what the text holds can be named; a name that is put together at run time is not found by reading.
        """
        unimported = self._unimported(script)
        if "tools" not in script and not unimported:
            return ()
        namespaces = set(self.catalog.namespaces.values())
        if unimported <= namespaces:
            found = plain_references(with_ascii_names(script), namespaces, self._is_described)
            if found is not None:
                return found
        sandbox = await self.sandbox.opened()
        return await sandbox.references(script, unimported=unimported, limits=limits)

    async def _settled(self, found: Sequence[Reference]) -> Sequence[Reference]:
        """Wait for the servers that a script names, and keep of its bare names those that are tools of these."""
        written = [reference for reference in found if not reference.is_bare]
        await self.disclosure.settle(map(_written, written))
        bare = {
            reference.function: replace(reference, is_bare=False)
            for reference in reversed(found)
            if reference.is_bare and self.catalog.by_python_name(_written(reference)) is not None
        }
        return sorted([*written, *bare.values()], key=lambda reference: reference.line) if bare else written

    def _is_described(self, namespace: str, function: str) -> bool:
        entry = self.catalog.by_python_name(f"{namespace}.{function}")
        return entry is not None and self.disclosure.is_described(entry)

    def _meant(self, reference: Reference) -> CatalogEntry | None:
        """Return the tool that a script names, also in another program's spelling or with a server's name misspelt."""
        namespace, function = reference.namespace, reference.function or ""
        if reference.function in _WHOLE_SERVER:
            return self.catalog.meant(namespace)
        name, near = f"{namespace}.{function}", self.catalog.of_near_server
        return self.catalog.by_python_name(name) or self.catalog.meant(name) or near(namespace, function)

    def _not_described(
        self, entries: Sequence[CatalogEntry], found: Sequence[Reference], changed: Sequence[str]
    ) -> NotDescribed:
        by_tool = {meant.python_name: one for one in reversed(found) if (meant := self._meant(one)) is not None}
        places = [_place(entry, by_tool.get(entry.python_name)) for entry in entries]
        return NotDescribed(tuple(entry.qualified_name for entry in entries), script_not_described(places, changed))

    async def manifest(self, script: str, found: Sequence[Reference]) -> dict[str, Any]:
        """Return what the guest is told about the tools."""
        described = self.disclosure.described()
        make = partial(manifest_of, script, found, self.disclosure, described)
        if all(entry.has_stub for entry in described):
            return make()
        # In a thread: a stub that was never made before takes milliseconds.
        return await anyio.to_thread.run_sync(make)

    async def mistakes(
        self, script: str, found: Sequence[Reference], manifest: Mapping[str, Any]
    ) -> Sequence[Diagnostic]:
        """Return the mistakes that stop a script; none if it cannot be checked, so that it runs."""
        if (call := await self._call_in_json(script)) is not None:
            return (call,)
        if not found:
            return ()
        try:
            diagnostics = await self._diagnostics(script, found, manifest)
        except CheckerError as error:
            logger().warning("the script was not checked", reason=str(error))
            return ()
        if any(one.code == SYNTAX and is_of_another_language(script, one.line) for one in diagnostics):
            return ()  # Python says so, and what else was found in it means nothing
        return diagnostics if stops(diagnostics) else ()

    async def _call_in_json(self, script: str) -> Diagnostic | None:
        """Return that a script is a tool call in JSON; waits only for a script that is one, if there is such a tool."""
        call = json_call(script)
        if call is None:
            return None
        found = call_in_json(call, self.catalog)
        if found is None:
            await self.disclosure.settle_tool(call.name)
            found = call_in_json(call, self.catalog)
        return found

    async def _diagnostics(
        self, script: str, found: Sequence[Reference], manifest: Mapping[str, Any]
    ) -> tuple[Diagnostic, ...]:
        """Check a script against the described tools of the servers that it names; others exist by name only."""
        servers = {self.catalog.server_of(reference.namespace) or "" for reference in found}
        entries = [entry for server in sorted(servers) for entry in self.catalog.of_server(server)]
        described = [entry for entry in entries if self.disclosure.is_described(entry)]
        listed = {namespace: tuple(entry["functions"]) for namespace, entry in manifest.items()}
        unimported = [namespace for namespace, entry in manifest.items() if entry.get("unimported")]
        found_mistakes = await diagnostics_of(self.checker, script, described, listed, unimported)
        return tuple(sharpened(one, script, self.catalog) for one in found_mistakes)

    def _unimported(self, script: str) -> frozenset[str]:
        """Return the names that may stand for servers and tools in a script without an import.

        These are namespaces of which the text uses an attribute, and names that it calls or imports which may be a
        server or tool in another program's spelling. Names that every script has are left out.
        """
        text = with_ascii_names(script)
        named = dict.fromkeys([*_IMPORTED.findall(text), *_CALLED.findall(text)])
        known = STAND_INS.union(self.catalog.namespaces.values()).intersection([*named, *_WITH_ATTRIBUTE.findall(text)])
        return known.union(self.disclosure.names_of_tools(islice(named, _MAX_NAMED))) - OF_EVERY_SCRIPT

    def _change_of(self, entry: CatalogEntry) -> str:
        text = self.disclosure.changed(entry)
        return f"{entry.python_name} {text}" if text else ""

    def spelled_out(self, found: Sequence[Reference]) -> list[CatalogEntry]:
        """Return the tools that a script spells out: with their server, or used as if they were one."""
        return self.named([reference for reference in found if self._is_of_tool(reference)])

    def named(self, found: Sequence[Reference]) -> list[CatalogEntry]:
        """Return the tools that a script names; all tools of a server of which it names none."""
        precise = {reference.namespace for reference in found if reference.function not in _WHOLE_SERVER}
        entries: list[CatalogEntry | None] = []
        for reference in found:
            if self._is_of_tool(reference):
                entries.append(self._meant(reference))
            elif reference.function is not None or reference.namespace not in precise:
                entries += self.catalog.of_server(self.catalog.server_of(reference.namespace) or "")
        return list({entry.python_name: entry for entry in entries if entry is not None}.values())

    def _is_of_tool(self, reference: Reference) -> bool:
        return reference.function not in _WHOLE_SERVER or self.catalog.server_of(reference.namespace) is None


def _with_filename(outcome: Raised | Stopped, filename: str) -> Raised | Stopped:
    """Put the script's own name into a traceback; references are parsed under the default one."""
    if isinstance(outcome, Stopped):
        return outcome
    renamed = outcome.traceback.replace(_IN_TRACEBACK.format("script.py"), _IN_TRACEBACK.format(filename))
    return Raised(outcome.type, outcome.message, renamed)


def _written(reference: Reference) -> str:
    return ".".join(filter(None, (reference.namespace, reference.function)))


def _place(entry: CatalogEntry, reference: Reference | None) -> str:
    """Return a tool's name, with the line that names it and the spelling there, if that differs."""
    if reference is None:
        return entry.python_name
    return check_texts.place(entry.python_name, reference.line, _written(reference))
