"""Names of Python that scripts use without an import, and what to write for each.

Above: missing_names.py, and the broker's hints.py. Below: nothing. Names that scripts also give their own values count
only where they are called.
"""

from __future__ import annotations

import re
import sys

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
"""Modules that hold something of their own name, which is what a script means that calls the name."""
_OF_DATETIME = re.compile(r"\bdatetime\.(?:UTC|date|datetime|time|timedelta|timezone)\b")


def python_hint(name: str, script: str) -> str:
    """Return what a script writes that uses this name of Python without an import; empty for any other name."""
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
    return f"write `import {_SHORT[name]}`" if name in _SHORT else ""
