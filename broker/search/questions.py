"""What questions ask for without saying it: "how big is it" asks for a size.

Above: queries.py. Below: words.py. General English, nothing about one product.
"""

from __future__ import annotations

import re
from functools import lru_cache

from broker.search.words import stem

# Up to six words may stand in the place of "...".
_ASKED_FOR = {
    "amount cost price usage balance": "how much",
    "audit history log activity revision": "who changed, who created, who deleted, who did, who edited, who removed, "
    "who updated",
    "content list": "what is in, what was in, what's in, whats in, what is inside, what's inside, whats inside, "
    "what does ... contain",
    "cost price": "how expensive, what does ... cost",
    "count number total": "how many",
    "date time history": "when",
    "difference history": "what changed, what has changed",
    "distance": "how far",
    "duration time": "how long",
    "event history log": "what happened, what has happened",
    "frequency rate count": "how often",
    "age date": "how old",
    "latency performance speed": "how fast, how slow",
    "load usage metric": "how busy",
    "location region address path": "where",
    "permission access": "who can, who has, who may",
    "probability": "how likely",
    "rating score review": "how good, how popular, how well",
    "reason error diagnose log": "why",
    "route direction": "how do i get to, how do we get to",
    "size capacity storage": "how big, how large",
    "status health availability": "is ... up, are ... up, is ... down, are ... down, is ... alive, is ... reachable, "
    "how healthy",
    "temperature weather": "how cold, how hot, how warm",
    "usage capacity": "how full",
    "weight": "how heavy",
}


def asked_for(text: str) -> frozenset[str]:
    """Return the stems of what the questions in a text ask for."""
    kinds = (found.lastindex for found in _QUESTION.finditer(text.lower()))
    return frozenset[str]().union(*(_stems()[kind - 1] for kind in kinds if kind))


def _pattern(questions: str) -> str:
    return "|".join(re.escape(one).replace(r"\ \.\.\.\ ", r"\ (?:\S+\ ){1,6}?") for one in questions.split(", "))


@lru_cache(maxsize=1)
def _stems() -> list[frozenset[str]]:
    return [frozenset(map(stem, nouns.split())) for nouns in _ASKED_FOR]


_QUESTION = re.compile(
    # Looking ahead first takes a third of the time.
    rf"\b(?=are |how |is |wh)(?:{'|'.join(f'({_pattern(one)})' for one in _ASKED_FOR.values())})\b",
    re.ASCII,
)
