"""Keeps output that was too long for a reply, for whoever ran the script.

Above: replies.py puts it here, the MCP server's resources read it. Below: room.py, token_room.py. Kept in memory,
within bounds; the oldest of whoever has the most goes first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from broker.room import gives_way
from broker.surface.token_room import TokenRoom
from broker.texts import run_texts
from broker.tiers.tokens import token_counter

if TYPE_CHECKING:
    from broker.tiers.tokens import TokenCounter

OUTPUT_TOKENS = 6_000
"""How many tokens a reply to a script has at most, and a page of kept output."""

MAX_CHARACTERS = 64 * 1024 * 1024
MAX_RUNS = 1_000

_URI_CHARACTERS = 500
_PREFIX = "/runs/"
_SUFFIX = "/output"

TEMPLATE = "resource:///runs/{run_id}/output{?offset}"
"""The URI template of kept output, as clients are told."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """The output of one run, as a claim of its owner on the room.

    Attributes:
        principal: Who may read it.
        used_at: Its place in the order in which outputs came.
        text: The output.
        page_tokens: How many tokens a page of it has.
        is_busy: Whether it is the one that comes in: it counts as its owner's, and does not give way.
    """

    principal: str
    used_at: int
    text: str
    page_tokens: int
    is_busy: bool = False


class KeptOutputs:
    """The whole output of runs, by run, each readable by its owner alone."""

    def __init__(
        self,
        *,
        most_characters: int = MAX_CHARACTERS,
        most_runs: int = MAX_RUNS,
        counter: TokenCounter | None = None,
    ) -> None:
        """Start empty. Pages are counted with `counter`; if None, with the installed tokenizer, or an estimate."""
        self._most_characters = most_characters
        self._most_runs = most_runs
        self._counter = counter
        self._kept: dict[str, _Kept] = {}
        self._characters = 0
        self._times = count()

    def keep(self, run_id: str, text: str, owner: str, page_tokens: int = OUTPUT_TOKENS) -> None:
        """Keep the output of a run; `owner` is who may read it, in pages of so many tokens."""
        self._drop(run_id)
        new = _Kept(owner, next(self._times), text, page_tokens)
        self._characters += len(text)
        while self._kept and (len(self._kept) >= self._most_runs or self._characters > self._most_characters):
            self._drop(self._leaving(new))
        self._kept[run_id] = new

    def _leaving(self, new: _Kept) -> str:
        """Return the output to drop for a new one: the oldest of the owner with the most, or else the oldest of all."""
        claims: dict[str, _Kept] = {**self._kept, "": replace(new, is_busy=True)}
        is_full = len(self._kept) >= self._most_runs
        leaving = gives_way(claims, new.principal, lambda kept: 1 if is_full else len(kept.text))
        return leaving or next(iter(self._kept))

    def _drop(self, run_id: str) -> None:
        kept = self._kept.pop(run_id, None)
        if kept is not None:
            self._characters -= len(kept.text)

    def read(self, uri: str, owner: str) -> str | None:
        """Return a page of the output that a URI names, or None where there is none for this owner.

        Raises:
            ValueError: The offset is not a number of characters; the text says so.
        """
        if len(uri) > _URI_CHARACTERS:
            return None
        parts = urlsplit(uri)
        if parts.scheme != "resource" or not (parts.path.startswith(_PREFIX) and parts.path.endswith(_SUFFIX)):
            return None
        run_id = parts.path[len(_PREFIX) : -len(_SUFFIX)]
        kept = self._kept.get(run_id)
        if kept is None or kept.principal != owner:
            return None
        begin = _offset(parts.query, run_id)
        if begin >= len(kept.text):
            return run_texts.past_the_end(len(kept.text), output_uri(run_id, 0))
        end = self._page_end(run_id, kept, begin)
        following = output_uri(run_id, end) if end < len(kept.text) else None
        return kept.text[begin:end] + run_texts.page_end(following)

    def _page_end(self, run_id: str, kept: _Kept, begin: int) -> int:
        """Return where the page ends that begins here: it and its last line are within the budget."""
        room = TokenRoom(self._counter or token_counter())
        last_line = room.tokens(run_texts.page_end(output_uri(run_id, len(kept.text))))
        # One character at least, so that whoever follows the pages comes to the end.
        return max(room.end(kept.text, kept.page_tokens - last_line, begin), begin + 1)


def output_uri(run_id: str, offset: int) -> str:
    """Return where the output of a run can be read on from a character."""
    return f"resource://{_PREFIX}{run_id}{_SUFFIX}?offset={offset}"


def _offset(query: str, run_id: str) -> int:
    given = parse_qs(query).get("offset", ["0"])[-1]
    if not (given.isascii() and given.isdigit() and len(given) <= 12):  # noqa: PLR2004  # digits of a huge output
        raise ValueError(run_texts.no_offset(given, output_uri(run_id, 24_000)))
    return int(given)
