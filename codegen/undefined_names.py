"""Hints for undefined names in a script: names of Python without their import, and names that do not exist.

Above: missing_names.py, and the broker's hints.py. Below: plain_text.py. Names that scripts also give their own values
count only where they are called.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from codegen.plain_text import few, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

_MEMBERS = {
    "asyncio": "Semaphore TaskGroup as_completed create_task gather wait_for",
    "base64": "b64decode b64encode",
    "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple",
    "collections.abc": "AsyncIterator Awaitable Iterable Iterator Mapping Sequence",
    "contextlib": "suppress",
    "copy": "deepcopy",
    "dataclasses": "asdict dataclass field",
    "datetime": "UTC date timedelta timezone",
    "decimal": "Decimal",
    "difflib": "SequenceMatcher get_close_matches unified_diff",
    "enum": "Enum IntEnum StrEnum",
    "fractions": "Fraction",
    "functools": "cache lru_cache partial reduce",
    "hashlib": "md5 sha1 sha256",
    "heapq": "nlargest nsmallest",
    "io": "BytesIO StringIO",
    "itertools": "accumulate batched chain combinations groupby islice pairwise permutations product zip_longest",
    "json": "JSONDecodeError dumps loads",
    "math": "ceil floor inf isclose isnan log log10 sqrt",
    "operator": "attrgetter itemgetter",
    "pathlib": "Path PurePath PurePosixPath",
    "random": "choice randint sample shuffle",
    "statistics": "fmean mean median pstdev quantiles stdev variance",
    "textwrap": "dedent shorten",
    "time": "perf_counter sleep",
    "types": "SimpleNamespace",
    "typing": "Any Callable Dict List Literal NamedTuple Optional Set Tuple TypedDict Union",
    "urllib.parse": "parse_qs quote unquote urlencode urljoin urlparse urlsplit",
    "uuid": "UUID uuid4",
    "zoneinfo": "ZoneInfo",
}
_HOMES = {name: module for module, names in _MEMBERS.items() for name in names.split()}
_SHORT = {"ET": "xml.etree.ElementTree as ET", "dt": "datetime as dt"}
_OTHERWISE = {"false": "False", "null": "None", "true": "True", "undefined": "None"}
_ARE_CALLED = frozenset({"copy", "datetime", "glob", "pprint"})
"""Modules that hold something of their own name; a script that calls the name means that."""
_SERVERS = 12
_SERVERS_CHARACTERS = 450
_RAISED = "failed calls of tools raise `ToolError`; an error of your own has to be defined in this script"
STARTS_ANEW = "each script starts anew: define what it uses"
_OF_DATETIME = re.compile(r"\bdatetime\.(?:UTC|date|datetime|time|timedelta|timezone)\b")


def python_hint(name: str, script: str) -> str:
    """Return what to write for a name of Python that is not imported, or of a caught error; empty for any other."""
    if name in _OTHERWISE:
        return f"in Python it is `{_OTHERWISE[name]}`"
    is_called = re.search(rf"(?<![\w.]){name}\s*\(", script) is not None
    if name == "datetime":
        is_module = _OF_DATETIME.search(script) is not None
        return "write `import datetime`" if is_module else "write `from datetime import datetime`"
    if name in _ARE_CALLED and is_called:
        return f"write `from {name} import {name}`"
    if name in sys.stdlib_module_names:
        return f"write `import {name}`"
    if name in _HOMES:
        is_used = is_called or not name.islower() or re.search(rf"(?<![\w.]){name}\.\w", script) is not None
        return f"write `from {_HOMES[name]} import {name}`" if is_used else ""
    is_caught = re.search(rf"(?m)^[ \t]*+except\b(?:(?! as )[^:]){{0,200}}\b{name}\b", script) is not None
    otherwise = _RAISED if is_caught else ""
    return f"write `import {_SHORT[name]}`" if name in _SHORT else otherwise


def nowhere_hint(name: str, script: str, servers: Iterable[str]) -> str:
    """Return what to do about a name that does not exist; if it is used like a server, with the servers that do."""
    if re.search(rf"\bawait\s+{name}\.\w+\s*\(", script) is None:
        return STARTS_ANEW
    there_are = one_line(few(servers, _SERVERS), _SERVERS_CHARACTERS) or "none"
    return f"{STARTS_ANEW}; no server is called so either (there are: {there_are})"
