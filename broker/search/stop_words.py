"""What is known of English words before any tool is: those that say nothing, and those that say little.

Above: queries.py, actions.py, documents.py. Below: words.py. The lists are general: nothing in them is about one
product. A word in no list counts as it is.
"""

from __future__ import annotations

from functools import lru_cache

from broker.search.words import stem

# Words that say nothing of what a tool does. They count only in a query that has no others.
_STOP_WORDS = """
    a able about across actually additionally after afterwards again all along already also although always am among
    an and another any anyone anything are arent as asap at away be because been before being besides between beyond
    both but by can cant could couldnt did didnt do does doesnt doing dont down during each either else etc ever every
    everyone everything for from give got had has hasnt have havent having he help hence her here hers him his how
    however i id if ill im in indeed instead into is isnt it its ive just know lately let lets like ll many may maybe
    me might mine more most much must my need no nobody nor not nothing now of off often on once one ones only onto or
    otherwise our ours out over own per perhaps please quite rather re really s same shall she should shouldnt simply
    since so some someone something sometimes somewhere soon still such t tell than thank thanks that thats the their
    theirs them then there theres these they theyre this those though through throughout thus to together too toward
    towards unless unlike until up upon us use used using usually ve very via want was wasnt we were weve what
    whatever whats when whenever where wherever whether which while who whom whose why will with within without wont
    would wouldnt yesterday yet you your youre yours
"""

# Words that people put around what they want. Few tools say them, and they tell tools apart no better for that.
_WEAK_WORDS = """
    advice available based best better complete create current currently data details different discover enough
    existing experience explore find free full general good great guide hello hey hi high idea improve improving
    include including information interested know latest learn life like list looking manage name new offer option
    particular people personal popular provide quality recent recommend related relevant result seem specific state
    status suggest suggestion support sure things tip today top topic type understand use user value various visit way
    world
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
