"""What is known of English words before any tool is: those that say nothing, and those that say little.

Above: queries.py, actions.py, documents.py. Below: words.py. The lists are general: nothing in them is about one
product. A word in no list counts as it is.
"""

from __future__ import annotations

from functools import lru_cache

from broker.search.words import stem

# Words that say nothing of what a tool does. They count only in a query that has no others.
_STOP_WORDS = """
    a able about actually after again all already also am an and another any anything are as asap at be because been
    before being between both but by can cant could did do does doing dont down during each either else etc ever
    every everything for from give got had has have having he help her here hers him his how i id if im in into is
    it its ive just know let like ll may maybe me might mine more most must my need no nor not of off on once only
    or our ours out over own per perhaps please re really s same shall she should simply since so some something
    still such t tell than thank thanks that the their theirs them then there these they this those to too until up
    us use used using ve very via want was we were what when where which while who whom whose why will with would
    yet you your yours
"""

# Words that people put around what they want. Few tools say them, and they tell tools apart no better for that.
_WEAK_WORDS = """
    advice available based best better complete create current currently data details different discover experience
    explore find free full general good great guide high idea improve improving include including information
    interested know latest learn life like list looking manage name new offer option particular people personal
    popular provide quality recent recommend related relevant result specific state status suggest suggestion support
    tip today top topic type understand use user value various visit way world
"""


@lru_cache(maxsize=1)
def stop_stems() -> frozenset[str]:
    """Return the stems of the stop words."""
    plain = _STOP_WORDS.split()
    return frozenset([*plain, *map(stem, plain)])


@lru_cache(maxsize=1)
def weak_stems() -> frozenset[str]:
    """Return the stems of words that count less in a query that has others."""
    return frozenset(map(stem, _WEAK_WORDS.split()))
