"""What a search says of servers and categories beside the tools it found. Nothing here decides anything.

Above: finder.py. Below: nothing. Each note is one sentence or two of less than 800 characters, with the literal that
asks for more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.calls.host_paths import HostPaths
from codegen.plain_text import few, one_line, that_fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.upstreams.server_status import ServerStatus

NAMED = 5
_CATEGORIES = 20
_CATEGORIES_CHARACTERS = 600
_NAME_CHARACTERS = 64
_ABOUT_CHARACTERS = 50
_SERVERS = 3
_WORDS = 6
_WORD_CHARACTERS = 20
_PROBLEM_CHARACTERS = 160


def woken_for_nothing(status: ServerStatus) -> str:
    """Return that a server was connected whose tools have other words than the search."""
    name = one_line(status.name, _NAME_CHARACTERS)
    return (
        f"{name} was connected for this search; none of its {status.tool_count} tools is among these. "
        f'server="{name}" lists them.'
    )


def down(status: ServerStatus) -> str:
    """Return that a server is not available, and which of its tools were searched all the same."""
    problem = one_line(HostPaths().hidden(status.problem or ""), _PROBLEM_CHARACTERS)
    held = f"its {status.tool_count} tools" if status.tool_count else "its tools are not among these; others"
    return f"{one_line(status.name, _NAME_CHARACTERS)} is not available: {problem}; {held} were searched."


def more_down(count: int) -> str:
    """Return how many servers are not available beside those that are named."""
    return f"{count} more servers are not available."


def still_connecting(names: Sequence[str]) -> str:
    """Return which servers may have tools soon."""
    shown = few([one_line(name, _NAME_CHARACTERS) for name in names], NAMED)
    return f"Still connecting: {shown}. Search again to see their tools."


def asleep(statuses: Sequence[ServerStatus]) -> str:
    """Return which servers are connected by a search that names them, with what the config says of them."""
    lines = [_line(status) for status in statuses]
    shown = few(lines, NAMED)
    first = one_line(statuses[0].name, _NAME_CHARACTERS)
    return f'Not connected yet; a search with one as its server, as server="{first}", looks into it: {shown}.'


def categories(members: Mapping[str, Sequence[object]], asleep: Iterable[str] = ()) -> str:
    """Return the largest categories, each with the number of its tools, and those of servers that are asleep."""
    largest = sorted(members, key=lambda name: (-len(members[name]), name))
    shown = [f"{one_line(name, _NAME_CHARACTERS)} ({len(members[name])})" for name in largest]
    shown += [f"{one_line(name, _NAME_CHARACTERS)} (asleep)" for name in asleep if name not in members]
    most = min(_CATEGORIES, len(that_fit(shown, _CATEGORIES_CHARACTERS)))
    rest = '; category="*" tells of all' if len(shown) > most else ""
    return f"Categories, with category=…: {few(shown, most)}{rest}."


def tools_of(servers: Iterable[str], words: Sequence[str] = ()) -> str:
    """Return whose tools are in a category of which nobody says what it is for, and words of their names."""
    said = few([one_line(server, _NAME_CHARACTERS) for server in servers], _SERVERS)
    shown = ", ".join(one_line(word, _WORD_CHARACTERS) for word in words[:_WORDS])
    return f"Tools of {said}" + (f": {shown}" if shown else "")


def of_servers(said: Mapping[str, str]) -> str:
    """Return what the config says of the servers of a category, each by its name where there are several."""
    if len(said) == 1:
        return next(iter(said.values()))
    lines = [f"{server}: {about}" if about else server for server, about in said.items()]
    return "; ".join(lines)


def _line(status: ServerStatus) -> str:
    name = one_line(status.name, _NAME_CHARACTERS)
    return f"{name} ({one_line(status.about, _ABOUT_CHARACTERS)})" if status.about else name
