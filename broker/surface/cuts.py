"""Cuts the parts of a run's reply so that they fit into one budget, and says where the rest of each can be read.

Above: replies.py. Below: token_room.py, outputs.py. The error goes first, with half of the budget at most, then the
value, then what was printed; of that, the shorter part is whole if it fits into half of what is left. Displayed texts
have a budget of their own, in equal parts; a short one leaves the rest of its part to those after it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from broker.surface.outputs import output_uri
from broker.surface.token_room import TokenRoom
from broker.texts import run_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.tiers.tokens import TokenCounter

_TAIL_SHARE = 3
_ERROR_SHARE = 2
_ERROR_TOKENS = 200
"""An error has at least that many: the texts of the broker itself are not longer."""
_DISPLAYED_TOKENS = 60
"""A displayed text has at least that many: as many as who sent it, and where it can be read, take."""
_TYPE_CHARACTERS = 200


class Cuts:
    """The cuts of one run's reply.

    Attributes:
        made: Names of all parts that lost something, in the text or in the envelope.
    """

    def __init__(self, run_id: str, offsets: Mapping[str, int], counter: TokenCounter) -> None:
        """Cut parts of a run that begin at `offsets` in the output that is kept of it."""
        self.made: list[str] = []
        self._run_id = run_id
        self._offsets = offsets
        self._plain = TokenRoom(counter)
        self._json = TokenRoom(counter, _inside_json)

    def text(self, failure: str, output: str, tokens: int) -> tuple[str, str]:
        """Return the failure and the output of a text, together within the budget."""
        failure = self._part("failure", failure, max(tokens // _ERROR_SHARE, _ERROR_TOKENS), self._plain)
        return failure, self._part("output", output, tokens - self._plain.tokens(failure), self._plain)

    def displayed(self, texts: Mapping[str, str], tokens: int) -> dict[str, str]:
        """Return displayed texts, by their names in the kept output, together within the budget."""
        shown = {}
        for place, (name, text) in enumerate(texts.items()):
            shown[name] = self._part(name, text, max(tokens // (len(texts) - place), _DISPLAYED_TOKENS), self._json)
            tokens -= self._json.tokens(shown[name])
        return shown

    def envelope(self, envelope: dict[str, Any], value: str, tokens: int) -> list[str]:
        """Bring error, value, stdout and stderr within the budget, as JSON; return which of them lost something.

        `value` is the value as JSON.
        """
        before = len(self.made)
        if envelope["error"] is not None:
            envelope["error"] = dict(envelope["error"])
        left = tokens - self._error(envelope["error"], tokens)
        if self._plain.fits(value, left):
            left -= self._plain.tokens(value)
        else:
            envelope["value"] = None
            self.made.append("value")
        for_stderr = self._json.used(envelope["stderr"], left // 2)
        envelope["stdout"] = self._part("stdout", envelope["stdout"], left - for_stderr, self._json)
        left -= self._json.tokens(envelope["stdout"])
        envelope["stderr"] = self._part("stderr", envelope["stderr"], left, self._json)
        return self.made[before:]

    def _error(self, error: dict[str, str] | None, tokens: int) -> int:
        """Cut an error, and return what it takes."""
        if error is None:
            return 0
        if len(error["type"]) > _TYPE_CHARACTERS:
            error["type"] = f"{error['type'][:_TYPE_CHARACTERS]}…"
        texts = ("message", "traceback")
        most = max(tokens // _ERROR_SHARE // len(texts), _ERROR_TOKENS)
        for name in texts:
            error[name] = self._part(f"error.{name}", error[name], most, self._json)
        return sum(map(self._json.tokens, error.values()))

    def _part(self, name: str, text: str, tokens: int, room: TokenRoom) -> str:
        """Return a part, or its beginning and its end, with where the rest is."""
        tokens = max(tokens, 0)
        if room.fits(text, tokens):
            return text
        self.made.append(name)
        offset = self._offsets[name]
        notice = room.tokens(run_texts.left_out(len(text), output_uri(self._run_id, offset + len(text))))
        left = max(tokens - notice, tokens // 2)
        tail = room.begin(text, left // _TAIL_SHARE)
        head = room.end(text, left - room.tokens(text[tail:]))
        tail = max(tail, head)
        said = run_texts.left_out(tail - head, output_uri(self._run_id, offset + head))
        return text[:head] + said + text[tail:]


def _inside_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
