"""What a search says of servers and categories beside the tools it found, and why one cannot be done.

Above: finder.py and the modules of the search. Below: call_texts.py. Nothing here decides anything. Each text is
one sentence or two of less than 800 characters, with the literal that asks for more, or what to ask instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.calls.host_paths import HostPaths
from broker.texts.call_texts import bounded_problem
from codegen.plain_text import counted, few, one_line, that_fit

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
_DOWN_CHARACTERS = 160
_GIVEN_CHARACTERS = 40
_REASON_CHARACTERS = 200
_NEAR_NAMED = 8
_NEAR_CHARACTERS = 64

NO_CURSOR = "The cursor cannot be read. Pass the cursor as it came, or none to start at the first page."
CURSOR_OF_ANOTHER = (
    "The cursor belongs to another search. Repeat query, mode and filters as they were, or pass no cursor."
)
TOO_SLOW = (
    "The regular expression takes too long over this many tools. Write one with fewer repetitions, filter by server, "
    "or search for words instead."
)
NOT_UNICODE = "it is not valid Unicode"
NO_EMBEDDER = "There is no embedder for a search by meaning. Use mode keyword, or configure one."
NOT_RANKED = "The ranker failed; the order is that of the search without it."
EMBEDDER_FAILED = "The embedder failed, so that there is no search by meaning now. Search with mode=keyword."
NO_NUMPY = (
    "A search by meaning needs NumPy. Install it with `pip install 'codemode-broker[embeddings]'`, or search by "
    "keyword."
)


def woken_for_nothing(status: ServerStatus) -> str:
    """Return that a server was connected whose tools have other words than the search."""
    name = one_line(status.name, _NAME_CHARACTERS)
    return (
        f"{name} was connected for this search; none of its {status.tool_count} tools is among these. "
        f'server="{name}" lists them.'
    )


def down(status: ServerStatus, *, is_alone: bool = False) -> str:
    """Return that a server is not available, and what was searched all the same; `is_alone` where no other was."""
    name = one_line(status.name, _NAME_CHARACTERS)
    problem = bounded_problem(HostPaths().hidden(status.problem or ""), _DOWN_CHARACTERS)
    again = f'Search with server="{name}" to see whether it is back.'
    held = f"its {status.tool_count} tools" if status.tool_count else "its tools are not among these; others"
    if is_alone and not status.tool_count:
        held, again = "its tools are not known, and no others", "Search again to see whether it is back."
    return f"{name} is not available: {problem}; {held} were searched. {again}"


def more_down(names: Sequence[str]) -> str:
    """Return which servers are not available beside those of which it is said why, and what says it of these."""
    shown = [one_line(name, _NAME_CHARACTERS) for name in names]
    are = f"{counted(len(shown), 'more server')} {'is' if len(shown) == 1 else 'are'}"
    return (
        f'{are} not available: {few(shown, NAMED)}. A search with one as its server, as server="{shown[0]}", says why.'
    )


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


def no_detail(given: str) -> str:
    """Return which levels of detail there are instead of one that there is not."""
    return f"There is no detail {given[:_GIVEN_CHARACTERS]!r}. Use name, brief or full."


def no_limit(given: object, most: int) -> str:
    """Return what a limit has to be."""
    shown = one_line(str(given)[:_GIVEN_CHARACTERS], _GIVEN_CHARACTERS)
    return f"The limit {shown} cannot be used. Give a whole number from 1 to {most}."


def none_of(name: str, known: Iterable[str], given: object) -> str:
    """Return what a value may be, for whoever asks in a program."""
    shown = one_line(repr(given), _REASON_CHARACTERS)
    return f"{name} is one of {', '.join(repr(str(one)) for one in known)}, not {shown}"


def expression_too_long(characters: int, most: int) -> str:
    """Return how long a regular expression may be."""
    return f"The regular expression has {characters} characters; use at most {most}."


def no_expression(reason: str) -> str:
    """Return that a regular expression is none, and why in the words of RE2."""
    return (
        f"The regular expression cannot be used: {one_line(reason, _REASON_CHARACTERS)}. Correct it (RE2 syntax: no "
        "look-around, no back-references), or search for words instead."
    )


def different_lengths(model: str) -> str:
    """Return that the vectors of a model are not of one length."""
    shown = one_line(model, _REASON_CHARACTERS)
    return f"The embedder {shown!r} returned vectors of different lengths. Give each model a name of its own."


def unknown_name(kind: str, name: str, near: Sequence[str], known: Sequence[str]) -> str:
    """Return that there is no server or category of a name, with the nearest ones, or the first few of those known."""
    if near:
        hint = f"Did you mean {' or '.join(one_line(one, _NEAR_CHARACTERS) for one in near)}?"
    elif known:
        more = ", …" if len(known) > _NEAR_NAMED else ""
        named = ", ".join(one_line(one, _NEAR_CHARACTERS) for one in known[:_NEAR_NAMED])
        hint = f"There are: {named}{more}. Name one of these, or no {kind}."
    else:
        hint = f"There are none: name no {kind}."
    return f"There is no {kind} {one_line(name, _NEAR_CHARACTERS)!r}. {hint}"


def _line(status: ServerStatus) -> str:
    name = one_line(status.name, _NAME_CHARACTERS)
    return f"{name} ({one_line(status.about, _ABOUT_CHARACTERS)})" if status.about else name
