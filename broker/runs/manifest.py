"""What a guest is told of the catalog before a script starts: the stubs of described tools, and the names of others.

Above: preparation.py. Below: the catalog and what is described of it. Its shape is in `sandbox/guest/stubs.py`.
"""

from __future__ import annotations

import builtins
import re
import sys
from typing import TYPE_CHECKING, Any

from broker.texts import description_texts
from broker.texts.call_texts import fetch_request
from codegen.normal_form import with_ascii_names
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.disclosure.disclosure import Disclosure
    from broker.tools.catalog import CatalogEntry
    from sandbox import Reference


_LOOKS = re.compile(r"\b(?:help|inspect|pydoc|signature|get_type_hints)\b|__(?:doc|annotations|signature)__")
"""Names with which a script looks at tools; the manifest then has sources and summaries to look at."""
OF_EVERY_SCRIPT = sys.stdlib_module_names | {*dir(builtins), "tools"}
"""Names that mean what every script has under them, unless it imports a server's: Python's, and the module of tools."""
_SUMMARY_CHARACTERS = 120


def manifest_of(
    script: str, found: Sequence[Reference], disclosure: Disclosure, described: Sequence[CatalogEntry]
) -> dict[str, Any]:
    """Return the manifest for a script that names what was `found`, given all `described` tools.

    It may have to generate stubs.

    The servers that it names are there without an import too, but for those with a name that every script has.

    Of servers whose names are not in the script's text, only the described tools are listed: each function costs the
    guest 5 µs, and a catalog may have ten thousand. If the script puts another name together at run time, the guest
    says that it is not described.
    """
    catalog, upstreams = disclosure.catalog, disclosure.upstreams
    text = with_ascii_names(script)
    looks = _LOOKS.search(text) is not None
    takes_all = not found and "tools" in text
    names = {reference.namespace for reference in found} - OF_EVERY_SCRIPT
    by_server: dict[str, list[CatalogEntry]] = {}
    for entry in described:
        by_server.setdefault(entry.spec.server, []).append(entry)
    manifest: dict[str, Any] = {}
    for server, namespace in catalog.namespaces.items():
        if upstreams[server].settings.disabled:
            continue
        is_whole = takes_all or namespace in text
        entries = catalog.of_server(server) if is_whole else by_server.get(server, ())
        functions = {entry.function: _function(entry, disclosure, looks=looks and is_whole) for entry in entries}
        manifest[namespace] = {"doc": description_texts.of_server(server), "functions": functions}
        if namespace in names:
            manifest[namespace]["unimported"] = True
        if not is_whole:
            manifest[namespace]["partial"] = True
        elif upstreams[server].status.problem is not None:
            _stand_in(functions, namespace, found)
    return manifest


def _function(entry: CatalogEntry, disclosure: Disclosure, *, looks: bool) -> dict[str, Any]:
    if disclosure.is_described(entry):
        stub = entry.stub()
        return stub.manifest_entry() | ({"source": stub.source} if looks else {})
    listed = {"described": False, "fetch": fetch_request([entry.qualified_name])}
    summary = one_line(entry.spec.about, _SUMMARY_CHARACTERS) if looks else ""
    return listed | ({"doc": summary} if summary else {})


def _stand_in(functions: dict[str, Any], namespace: str, found: Sequence[Reference]) -> None:
    """Let a script call what it names of a server that is down: the call raises an error that it can catch."""
    for reference in found:
        if reference.namespace == namespace and reference.function is not None and reference.function != "*":
            entry = {"described": True, "doc": "", "parameters": [], "accepts_extra": True, "types": []}
            functions.setdefault(reference.function, entry)
