"""What is asked of a search, and a page of what it found, as data.

Above: whoever shows tools to a model or person. Below: cursors.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from broker.errors import SearchError
from broker.search.cursors import cursor_at, fingerprint_of, offset_of
from broker.texts import search_texts
from codegen.plain_text import one_line, opening

if TYPE_CHECKING:
    from collections.abc import Collection

    from codegen import ToolSpec

DEFAULT_LIMIT = 20
MAX_LIMIT = 200
_NAME_CHARACTERS = 200
_SUMMARY_CHARACTERS = 200


class Detail(StrEnum):
    """How much of each tool is wanted. Only `full` is a description fetch."""

    NAME = "name"
    BRIEF = "brief"
    FULL = "full"

    @classmethod
    def parse(cls, text: str) -> Detail:
        """Read a level; `detailed` is `full`.

        Raises:
            SearchError: There is no such level.
        """
        try:
            return cls.FULL if text == "detailed" else cls(text)
        except ValueError:
            raise SearchError(search_texts.no_detail(text)) from None


class Mode(StrEnum):
    """How tools are looked for; `auto` is hybrid where an embedder was given, and else keyword."""

    AUTO = "auto"
    KEYWORD = "keyword"
    REGEX = "regex"
    EMBEDDING = "embedding"
    HYBRID = "hybrid"


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """Which tools may be found. An annotation filter admits only tools whose server said just that.

    Attributes:
        servers: Names of servers, one text being one; None for all, empty for none.
        category: Name of a category; None for all.
        read_only: What `readOnlyHint` has to be; None for whatever it is. The others alike.
        destructive: As `read_only`.
        idempotent: As `read_only`.
        open_world: As `read_only`.
    """

    servers: Collection[str] | None = None
    category: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    def __post_init__(self) -> None:
        """Take the name of one server as that."""
        if isinstance(self.servers, str):
            object.__setattr__(self, "servers", (self.servers,))

    @property
    def given(self) -> tuple[str, ...]:
        """Which there are, as a search names them: `annotations`, `category`, `server`."""
        hints = (self.read_only, self.destructive, self.idempotent, self.open_world)
        there = {
            "annotations": any(want is not None for want in hints),
            "category": self.category is not None,
            "server": self.servers is not None,
        }
        return tuple(name for name, is_given in there.items() if is_given)

    def without(self, names: Collection[str]) -> Filters:
        """Return the same but for some, as `given` names them."""
        keeps_hints = "annotations" not in names
        return Filters(
            servers=None if "server" in names else self.servers,
            category=None if "category" in names else self.category,
            read_only=self.read_only if keeps_hints else None,
            destructive=self.destructive if keeps_hints else None,
            idempotent=self.idempotent if keeps_hints else None,
            open_world=self.open_world if keeps_hints else None,
        )

    def admit(self, spec: ToolSpec, categories: Collection[str]) -> bool:
        """Tell whether a tool of these categories may be found."""
        hints = spec.annotations
        wanted = (
            (self.read_only, hints.read_only),
            (self.destructive, hints.destructive),
            (self.idempotent, hints.idempotent),
            (self.open_world, hints.open_world),
        )
        return (
            (self.servers is None or spec.server in self.servers)
            and (self.category is None or self.category in categories)
            and all(want is None or want is said for want, said in wanted)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchRequest:
    """One search.

    Attributes:
        query: Words, sentences, or with mode `regex` an expression; empty lists tools by name.
        mode: How to look.
        detail: How much of each tool is wanted.
        filters: Which tools may be found.
        limit: Tools on a page, 1 to 200.
        cursor: `next_cursor` of the page before; None for the first.

    Raises:
        ValueError: `mode` or `detail` is none of those that there are.
        TypeError: `query` or `cursor` is no text, or `filters` are not `Filters`.
    """

    query: str
    mode: Mode = Mode.AUTO
    detail: Detail = Detail.BRIEF
    filters: Filters = Filters()
    limit: int = DEFAULT_LIMIT
    cursor: str | None = None

    def __post_init__(self) -> None:
        """Take a mode and a detail by their names too, and a limit that is a whole number in whatever form."""
        cursor = "" if self.cursor is None else self.cursor
        for name, given, kind in (
            ("query", self.query, str),
            ("filters", self.filters, Filters),
            ("cursor", cursor, str),
        ):
            if not isinstance(given, kind):
                wanted = "Filters" if kind is Filters else "text"
                raise TypeError(f"in a search, {name} is {wanted}, not a {type(given).__name__}")
        object.__setattr__(self, "limit", _whole(self.limit))
        object.__setattr__(self, "mode", _one_of("mode", Mode, self.mode))
        object.__setattr__(self, "detail", _one_of("detail", Detail, self.detail))

    def offset(self) -> int:
        """Return how many tools the pages before had.

        Raises:
            SearchError: The limit or the cursor cannot be used.
        """
        if type(self.limit) is not int or not 1 <= self.limit <= MAX_LIMIT:  # a model's JSON: True and 2.5 may come
            raise SearchError(search_texts.no_limit(self.limit, MAX_LIMIT))
        return 0 if self.cursor is None else offset_of(self.cursor, self.fingerprint())

    @property
    def browses(self) -> bool:
        """Whether it looks through tools, searching for nothing in them."""
        return self.detail is Detail.BRIEF and not self.query.strip()

    def meaning(self, servers: Collection[str] | None, mode: Mode) -> SearchRequest:
        """Return the same search by other servers and mode, with its own cursor for the place of this one's."""
        place = self.offset()
        meant = replace(self, filters=replace(self.filters, servers=servers), mode=mode, cursor=None)
        return replace(meant, cursor=meant.cursor_after(place)) if self.cursor is not None else meant

    def cursor_after(self, count: int) -> str:
        """Return the cursor of what comes after so many tools of this page."""
        return cursor_at(self.offset() + count, self.fingerprint())

    def fingerprint(self) -> str:
        """Stand for all that decides what is found, in which order."""
        servers = None if self.filters.servers is None else sorted(self.filters.servers)
        hints = [self.filters.read_only, self.filters.destructive, self.filters.idempotent, self.filters.open_world]
        return fingerprint_of([self.query, self.mode, servers, self.filters.category, *hints])


def _whole(given: Any) -> Any:
    """Return 20 for 20.0, which is the same integer in JSON; whatever else as it is."""
    return int(given) if type(given) is float and given.is_integer() else given


def _one_of(name: str, kind: type[StrEnum], given: str) -> StrEnum:
    try:
        return kind(given)
    except ValueError:
        raise ValueError(search_texts.none_of(name, kind, given)) from None


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Tools found, best first.

    Attributes:
        tools: The tools of this page.
        detail: How much was asked for.
        next_cursor: Where the next page begins; None when this is the last.
        notes: What went differently than asked, as sentences.
        unknown: Those of the notes that say that a server or category of the request is none.
        excluded_by: If nothing was found, the filters without which something is, as few as do.
    """

    tools: tuple[ToolSpec, ...]
    detail: Detail
    next_cursor: str | None
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    excluded_by: tuple[str, ...] = ()

    @property
    def to_describe(self) -> tuple[str, ...]:
        """Qualified names whose full description was asked for; fetching it is the caller's, who marks them."""
        return tuple(spec.qualified_name for spec in self.tools) if self.detail is Detail.FULL else ()

    def entries(self) -> list[dict[str, Any]]:
        """Return what may be shown without a description fetch: with `full`, no more than with `brief`."""
        return [listed(spec, self.detail) for spec in self.tools]


def listed(spec: ToolSpec, detail: Detail) -> dict[str, str]:
    """Return a tool's name and, above `name`, one line about it, made inert."""
    entry = {"name": one_line(spec.qualified_name, _NAME_CHARACTERS)}
    return entry if detail is Detail.NAME else entry | {"summary": summary_of(spec)}


def summary_of(spec: ToolSpec) -> str:
    """Return the beginning of a tool's description, or else its title, on one line and made inert."""
    return opening(spec.description, _SUMMARY_CHARACTERS) or one_line(spec.title, _SUMMARY_CHARACTERS)
