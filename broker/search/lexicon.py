"""What is known of English words before any tool is: those that say nothing, those that say little, those alike.

Above: queries.py, actions.py, documents.py. Below: words.py. The lists are general: nothing in them is about one
product. A word in no list counts as it is.
"""

from __future__ import annotations

from functools import lru_cache

from broker.search.words import stem

# Words that say nothing of what a tool does. They count only in a query that has no others.
_STOP_WORDS = """
    a able about after again all also am an and any are as at be been before being between both but by can cant could
    did do does doing dont down during each either else etc for from give had has have having he help her here hers
    him his how i id if im in into is it its ive just know let like ll may me might mine more most must my need no
    nor not of off on once only or our ours out over own per please re s same shall she should so some such t tell
    than that the their theirs them then there these they this those to too up us use used using ve very via want
    was we were what when where which while who whom whose why will with would you your yours
"""

# Words that people put around what they want. Few tools say them, and they tell tools apart no better for that.
_WEAK_WORDS = """
    advice available based best better complete create current currently data details different discover experience
    explore find free full general good great guide high idea improve improving include including information
    interested know latest learn life like list looking manage name new offer option particular people personal
    popular provide quality recent recommend related relevant result specific state status suggest suggestion support
    tip today top topic type understand use user value various visit way world
"""

# Words that tools and the people who look for them use for the same thing, or for near things.
_SAME = """
    add create generate make new
    cancel stop
    alter change edit modify set update
    app application
    authenticate authentication authorize
    buy product purchase shop shopping store
    calculate compute
    check test validate verify
    config configuration setting
    convert transform translate
    database db
    delete destroy drop erase remove
    detail describe info information
    dir directory folder
    display fetch get list read retrieve show view
    discover find locate lookup query search
    doc document file
    document pdf
    email mail
    env environment
    execute launch run start trigger
    id identifier
    k8s kubernetes
    message msg
    org organization
    post publish send submit
    put upload
    repo repository
    academic paper research scholarly science scientific study
    access permission right role
    advertisement campaign marketing
    agenda calendar schedule
    airline airplane flight plane
    apartment estate home house property
    appointment event meeting
    article headline news
    astrology horoscope zodiac
    audio music playlist song
    audio speech voice
    author book novel
    automation pipeline workflow
    automobile car vehicle
    backup snapshot
    bill billing invoice
    bitcoin crypto cryptocurrency
    bug defect issue problem ticket
    business company enterprise firm
    calculation equation math
    camera image photo picture
    career cv job resume
    cert certificate ssl tls
    chart diagram graph plot visualize
    chat conversation message
    class course learn lesson teach tutorial
    client customer
    climate forecast temperature weather
    clothes clothing fashion outfit
    code program programming script
    cook dish ingredient meal recipe
    cost expense price
    coupon deal discount promotion sale voucher
    credential password secret
    cuisine dinner eat food meal restaurant
    destination tour tourism travel trip vacation
    disease medical symptom
    dns domain
    doctor health medical
    error exception failure problem
    exam quiz test
    excel sheet spreadsheet
    exercise fitness workout
    film movie tv
    finance invest investment market stock trading
    funny humor joke
    gift present
    git github repository
    history log
    host machine server
    hotel accommodation lodging
    label tag
    law lawyer legal
    link page site url web website
    location place region
    member people person user
    poem poetry
    quote saying
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


@lru_cache(maxsize=1)
def same_stems() -> dict[str, frozenset[str]]:
    """Return, for each stem that has any, the stems that may stand in its place."""
    groups = [{stem(word) for word in line.split()} for line in _SAME.strip().splitlines()]
    return {word: frozenset().union(*(g for g in groups if word in g)) - {word} for group in groups for word in group}
