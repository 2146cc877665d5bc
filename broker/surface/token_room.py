"""Finds how much of a text fits into a budget of tokens, and counts little more than that much of it.

Above: replies.py, outputs.py. Below: the token counter. Counted in steps, a text has hardly ever fewer tokens than as a
whole; what was found is counted once more as a whole, so that it is within the budget for certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.tiers.tokens import TokenCounter

CHARACTERS_PER_TOKEN = 8
"""No more than that many fit for each token, as of blanks: other models' tokenizers count more of them."""

_STEP = 1_024


class TokenRoom:
    """Measures texts by the tokens that they take."""

    def __init__(self, counter: TokenCounter, spelled: Callable[[str], str] | None = None) -> None:
        """Count with `counter`, texts as they are `spelled` where they are sent, as in JSON."""
        self._counts = counter.count_once or counter.count
        self._spelled = spelled

    def tokens(self, text: str) -> int:
        """Return how many tokens all of a text takes."""
        return self._counts(self._spelled(text) if self._spelled is not None else text)

    def end(self, text: str, tokens: int, start: int = 0) -> int:
        """Return where the longest part of a text ends that begins at `start` and has at most so many tokens.

        It may be a hundredth shorter than that.
        """
        end, left = start, tokens
        most = min(len(text), start + max(tokens, 0) * CHARACTERS_PER_TOKEN)
        while end < most:
            step = text[end : min(end + _STEP, most)]
            used = self.tokens(step)
            if used > left:
                end += self._longest(step, left)
                break
            left -= used
            end += len(step)
        while end > start and (over := self.tokens(text[start:end]) - tokens) > 0:
            end = max(start, end - over)
        return end

    def fits(self, text: str, tokens: int) -> bool:
        """Tell whether all of a text has at most so many tokens."""
        return self.end(text, tokens) == len(text)

    def used(self, text: str, tokens: int) -> int:
        """Return how many tokens a text takes, or `tokens` if those are not enough for it."""
        return min(self.tokens(text), tokens) if len(text) <= tokens * CHARACTERS_PER_TOKEN else tokens

    def begin(self, text: str, tokens: int) -> int:
        """Return where an end of a text begins that has at most so many tokens; it may be shorter than it could."""
        size = min(len(text), max(tokens, 0) * CHARACTERS_PER_TOKEN // 2)
        while size and (used := self.tokens(text[-size:])) > tokens:
            size = min(size * tokens // used, size - 1)
        return len(text) - size

    def _longest(self, step: str, tokens: int) -> int:
        """Return how many characters of a step, which takes more, fit into so many tokens."""
        fitting, above = 0, len(step)
        while above - fitting > 1:
            middle = (fitting + above) // 2
            if self.tokens(step[:middle]) <= tokens:
                fitting = middle
            else:
                above = middle
        return fitting
