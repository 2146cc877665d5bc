"""English words that stand in each other's place: tools use one, and the people who look for them another.

Above: queries.py, second_look.py. Below: words.py. The lists are general: nothing in them is about one product.
"""

from __future__ import annotations

from functools import lru_cache

from broker.search.words import stem

# Words that mean the very same here. A tool that says two of them says it once.
_ALIKE = """
    add create generate make new
    admin administrator
    allow grant permit
    alter change edit modify update
    app application
    argument param parameter
    auth authenticate authentication login
    authorization authorize
    average avg mean
    backup snapshot
    bug defect
    calc calculate compute
    cert certificate ssl tls
    classification classify
    comparison compare
    config configuration configure setting
    conversion convert
    count num number
    database db
    delete destroy drop erase remove
    deny revoke
    description describe
    detail info information
    dev development
    diagnose diagnosis diagnostic
    dir directory folder
    discover find locate lookup search
    display show view
    doc document
    email mail
    employee staff
    env environment
    err error
    explain explanation
    fetch get read retrieve
    func function
    id identifier
    identification identify
    image img photo picture
    init initialize
    issue ticket
    k8s kubernetes
    launch start
    lib library
    link url
    max maximum
    mem memory
    message msg
    min minimum
    mq queue
    namespace ns
    notification notify
    obj object
    org organisation organization
    password pwd
    perm permission
    photo pic
    prod production
    proj project
    ref reference
    repo repository
    req request
    respond response
    sched schedule
    spec specification
    stat statistic
    sub subscription
    summarise summarize summary
    sync synchronize
    synthesis synthesize
    transaction txn
    transcribe transcription
    usage util utilization
    user usr
    validate verify
    var variable
    ver version
    vol volume
    workspace ws
"""

# Words for near things, not for a thing and its parts. A tool that says several of them is the more about it.
_NEAR = """
    academic paper research scholarly science scientific study
    accept approve confirm review
    access permission policy privilege role
    access permission right role
    accommodation hotel lodging
    account profile
    activate enable
    activity audit history log trace
    advertisement campaign marketing
    advice guidance guide practice recommendation suggestion
    agenda calendar schedule
    airline airplane flight plane
    alarm alert incident notification notify
    alarm availability available health healthy status
    alter change edit modify set update
    apartment estate home house property
    appointment event meeting
    article headline news
    assign owner
    astrology horoscope zodiac
    attach connect link
    attachment file
    attribute column field property schema structure
    audio music playlist song
    audio speech voice
    authenticate authentication authorize
    author book novel
    author owner
    automation pipeline workflow
    automobile car vehicle
    bill billing invoice
    billing budget charge cost price spend
    bitcoin crypto cryptocurrency
    blob bucket object
    bug defect issue problem ticket
    build compile package
    business company enterprise firm
    buy product purchase shop shopping store
    calculation equation math
    call meeting
    camera image photo picture
    cancel stop
    capacity limit quota usage
    career cv job resume
    change commit diff push
    chart diagram graph plot visualize
    chat conversation message
    check test validate verify
    class course learn lesson teach tutorial
    client customer
    climate forecast temperature weather
    clone copy duplicate fork
    close complete finish
    clothes clothing fashion outfit
    code program programming script
    combine join merge
    comment feedback note remark reply review
    contact person
    container docker image pod
    convert transform translate
    cook dish ingredient meal recipe
    cost expense price
    count number total
    coupon deal discount promotion sale voucher
    crash debug diagnose error failure issue problem troubleshoot
    credential key secret token
    credential password secret
    cron schedule timer
    cuisine dinner eat food meal restaurant
    deactivate disable
    deck presentation slide
    decline deny reject
    deploy deployment release rollout
    describe detail info information
    destination tour tourism travel trip vacation
    detach disconnect unlink
    discover find locate lookup query search
    disease medical symptom
    disk drive volume
    display fetch get list read retrieve show view
    dns domain
    doc document file
    doctor health medical
    document pdf
    download export
    encrypt encryption
    endpoint url
    entry item record row
    epic sprint story
    error exception failure problem
    exam quiz test
    example sample template
    excel sheet spreadsheet
    exchange replace swap switch
    execute launch run start trigger
    execution job run task
    exercise fitness workout
    film movie tv
    finance invest investment market stock trading
    firewall rule
    function lambda
    funny humor joke
    gift present
    git github repository
    group team
    grow increase raise
    grow replica resize scale shrink size
    host machine server
    import upload
    index search
    insert put write
    label tag
    law lawyer legal
    link page site url web website
    location place region
    location region zone
    log output print
    machine vm
    member participant
    member people person user
    metric monitor statistic telemetry
    move transfer
    network subnet vnet vpc
    note notebook
    overview summary
    page pagination paging
    poem poetry
    post publish send submit
    put upload
    query sql statement
    quote saying
    reboot restart
    recover reset restore revert rollback undo
    refresh sync update
    rename update
    revision version
    sheet table
    task todo
"""


def alike_stems(word: str) -> frozenset[str]:
    """Return the stems that mean the very same as this one."""
    return _alike().get(word, frozenset())


def near_stems(word: str) -> frozenset[str]:
    """Return the stems that mean the same as this one, or nearly."""
    return _near().get(word, frozenset())


@lru_cache(maxsize=1)
def _alike() -> dict[str, frozenset[str]]:
    return _others(_ALIKE)


@lru_cache(maxsize=1)
def _near() -> dict[str, frozenset[str]]:
    return _others(_ALIKE + _NEAR)


def _others(lines: str) -> dict[str, frozenset[str]]:
    groups = [{stem(word) for word in line.split()} for line in lines.strip().splitlines()]
    return {word: frozenset().union(*(g for g in groups if word in g)) - {word} for group in groups for word in group}
