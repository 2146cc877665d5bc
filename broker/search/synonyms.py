"""English words that stand in each other's place: tools use one, and the people who look for them another.

Above: queries.py, second_look.py. Below: words.py. The lists are general: nothing in them is about one product.
"""

from __future__ import annotations

from functools import lru_cache

from broker.search.words import stem

# Words that mean the very same here. A tool that says two of them says it once.
_ALIKE = """
    abort cancel
    account acct
    add create generate make new
    addr address
    admin administrator
    allow grant permit
    allowlist whitelist
    alter change edit modify update
    amount amt
    analyse analysis analyze
    app application
    appointment appt
    arch architecture
    argument param parameter
    attendee invitee
    attr attribute
    auth authenticate authentication login
    authorise authorize
    authorization authorize
    average avg mean
    backup snapshot
    blacklist blocklist denylist
    bug defect
    calc calculate compute
    catalog catalogue
    categorise categorize category
    center centre
    cert certificate ssl tls
    certification certify
    char character
    child children
    classification classify
    cmd command
    col column
    color colour
    compare comparison
    config configuration configure setting
    conn connection
    context ctx
    conversion convert
    coord coordinate
    count num number
    credential creds
    criteria criterion
    customise customize
    database db
    deactivate disable
    deinstall uninstall
    delete destroy drop erase remove
    deliver delivery
    deny revoke
    department dept
    desc describe description
    dest destination
    detail info information
    dev development
    diagnose diagnosis diagnostic
    dict dictionary
    diff difference
    dim dimension
    dir directory folder
    discover discovery
    discover find locate lookup search
    display show view
    dl download
    doc document
    dup duplicate
    elem element
    email mail
    embed embedding vectorize
    employee staff
    enquiry inquiry
    env environment
    err error
    eval evaluate evaluation
    event evt
    exec execute
    exit quit
    explain explanation
    expr expression
    ext extension
    fav favorite favourite
    feat feature
    fetch get read retrieve
    filesystem fs
    firewall fw
    fmt format
    freq frequency
    func function
    gen generate
    gray grey
    group grp
    halt stop
    hardware hw
    hist history
    id identifier
    identification identify
    idx index indices
    image img photo picture
    infra infrastructure
    init initialize
    initialise initialize
    inst instance
    international intl
    issue ticket
    javascript js
    k8s kubernetes
    kql kusto
    lang language
    lat latitude
    launch start
    lib library
    licence license
    link url
    lng lon longitude
    loc location
    localise localize
    management mgmt
    manager mgr
    markdown md
    max maximum
    maximise maximize
    meeting mtg
    mem memory
    message msg
    min minimum
    minimise minimize
    modification modify
    mq queue
    multiplication multiply
    namespace ns
    nav navigate navigation
    normalise normalize
    notif notification notify
    obj object
    op operation
    opentelemetry otel
    opt option
    optimisation optimise optimize
    org organisation organization
    organise organize
    orig original
    package pkg
    password pwd
    pct percent percentage
    people person
    perf performance
    perm permission
    personalise personalize
    pg postgres postgresql
    phone tel telephone
    photo pic
    postpone reschedule
    pref preference
    prev previous
    prioritise prioritize priority
    proc process
    prod production
    program programme
    proj project
    prop property
    purge wipe
    py python
    qty quantity
    rand random
    receive recv
    recognise recognition recognize
    recover recovery
    ref reference
    regex regexp
    reimburse reimbursement
    repo repository
    req request
    resolution resolve
    resp response
    respond response
    sale sell
    sched schedule
    schema schemata
    seq sequence
    serialise serialize
    service svc
    sess session
    sig signature
    simplification simplify
    solution solve
    source src
    spec specification
    standard std
    standardise standardize
    stat statistic
    str string
    sub subscription
    subnet subnetwork
    subscribe subscription
    summarise summarize summary
    sync synchronize
    synchronise synchronize
    synthesis synthesize
    synthesize tts
    sys system
    table tbl
    temporary tmp
    terraform tf
    text txt
    theater theatre
    thumb thumbnail
    tokenise tokenize
    transaction txn
    transcribe transcription
    translate translation
    ts typescript
    usage util utilization
    user usr
    utilise utilize
    validate validation
    validate verify
    var variable
    ver version
    verification verify
    vertex vertices
    vid video
    visualise visualize
    vol volume
    vuln vulnerability
    weigh weight
    wf workflow
    workspace ws
    year yr
"""

# Words for near things, not for a thing and its parts. A tool that says several of them is the more about it.
_NEAR = """
    abort cancel end halt kill stop terminate
    academic paper research scholarly science scientific study
    accept approve confirm review
    access login
    access permission policy privilege role
    access permission right role
    accommodation hotel lodging
    account customer user
    account profile
    activate enable
    activity audit history log trace
    add append insert write
    adjust change tune tweak
    administer manage
    advertisement campaign marketing
    advice guidance guide practice recommendation suggestion
    advice hint recommendation suggestion tip
    agenda calendar schedule
    agent assistant bot chatbot copilot
    aggregate group sum
    aggregate rollup
    agreement contract
    airline airplane flight plane
    alarm alert incident notification notify
    alarm alert threshold
    alarm availability available health healthy status
    alarm notification reminder
    allocate create provision
    allocate reserve
    allow allowlist grant permit whitelist
    allow open
    alter change edit modify set update
    analysis analytics
    analyze assess evaluate examine
    analyze diagnose investigate troubleshoot
    anniversary birthday
    announce broadcast notify
    answer reply respond
    apartment estate home house property
    appointment event meeting
    appointment slot
    approval sign signoff
    architecture diagram topology
    archive compress zip
    around close nearby
    article headline news
    artifact binary build package
    asset resource
    assign delegate
    assign owner
    astrology horoscope zodiac
    athlete player
    attach connect link
    attach mount
    attachment file
    attendee guest invitee member participant
    attraction landmark sight
    attribute column field property schema structure
    audience segment
    audio music playlist song
    audio speech voice
    audit inspect scan
    audit lighthouse
    authenticate authentication authorize
    author book novel
    author collaborator contributor
    author owner
    author sender
    autocomplete completion suggest
    automation pipeline workflow
    automobile car vehicle
    autoscale autoscaling scale
    availability busy free
    availability occupancy
    availability ping probe synthetic uptime
    availability ping uptime webtest
    backlog pending queue
    balance loadbalancer
    balance wallet
    ban block deny forbid restrict
    bandwidth iops speed throughput
    basket cart checkout
    bicep iac
    bid offer
    bill billing invoice
    bill charge
    billing budget charge cost price spend
    bitcoin crypto cryptocurrency
    blob bucket object
    blueprint template
    board dashboard panel report
    boilerplate bootstrap init scaffold template
    book reservation reserve
    bookmark favorite like star
    bottleneck latency performance slow
    budget quota
    buffer cache memory
    cache memcached redis valkey
    bug defect issue problem ticket
    build compile package
    bundle package
    business company enterprise firm
    buy order purchase
    buy product purchase shop shopping store
    bypass skip
    calculation equation math
    call meeting
    callback handler
    callback hook webhook
    calorie diet nutrition
    camera image photo picture
    capacity limit quota usage
    capacity size
    caption subtitle transcript
    capture record
    capture screenshot snapshot
    card task ticket
    career cv job resume
    career vacancy
    case scenario
    category label tag topic
    certificate https ssl tls
    change commit diff push
    change switch toggle
    changelog history release
    channel topic
    charge pay payment transaction
    chargeback dispute
    chart diagram graph plot visualize
    chat conversation message
    check test validate verify
    checklist task todo
    checkpoint snapshot
    checksum digest hash
    chunk piece
    chunk segment split
    class course learn lesson teach tutorial
    clean cleanup clear delete prune purge
    clear empty flush purge truncate
    click press tap
    client customer
    climate forecast temperature weather
    clip video
    clone copy duplicate fork
    close complete finish
    close exit quit
    clothes clothing fashion outfit
    club squad team
    code program programming script
    codebase repo
    collect gather
    collection corpus dataset
    column header
    combine join merge
    comment feedback note remark reply review
    commit revision
    compare difference patch
    compensation pay salary wage
    competency skill
    compliance governance policy
    component element widget
    compose draft write
    compress reduce
    condense digest recap shorten summarize
    confirm validate verify
    connector integration plugin
    consent permission
    consumer listener receiver subscriber
    consumption load usage utilization
    contact person
    container docker image pod
    container sidecar
    continue next proceed resume
    convention guideline practice standard style
    conversation dialogue
    conversation discussion thread
    convert encode
    convert transform translate
    cook dish ingredient meal recipe
    coordinate geocode
    copy mirror replicate sync
    copy paste
    core cpu processor vcore vcpu
    cost expense price
    cost money price pricing rate
    count number total
    coupon deal discount promotion sale voucher
    courier delivery parcel shipment shipping
    crash debug diagnose error failure issue problem troubleshoot
    crash exception
    crawl extract scrape
    create establish setup
    credential key secret token
    credential password secret
    cron recurring schedule
    cron schedule timer
    cuisine dinner eat food meal restaurant
    currency exchange forex
    customer shopper
    cve vulnerability weakness
    daemon service
    date time timestamp
    deactivate disable
    deadletter dlq
    deadline due
    deal lead opportunity prospect
    debt loan mortgage
    decision verdict
    deck presentation slide
    decline deny reject
    decode encode
    decommission delete deprovision dismantle remove retire
    decompress extract unzip
    decrease lower reduce shrink
    dedupe distinct duplicate unique
    default preset
    define definition meaning
    definition layout schema structure
    degraded unhealthy
    delay latency performance slow
    delete deregister unregister
    delete discard remove trash
    dependency library module package
    deploy deployment release rollout
    deploy publish release ship
    deprecate obsolete
    depth length
    describe detail info information
    destination tour tourism travel trip vacation
    destroy teardown
    detach disconnect unlink
    dictation speech
    dictation stt transcribe transcript transcription
    digest summary
    direction map navigation route
    directory drive folder
    disaster failover recovery
    discover find locate lookup query search
    disease medical symptom
    disk drive volume
    disk hdd ssd volume
    display fetch get list read retrieve show view
    distance similarity
    divide split
    dns domain
    doc document file
    doc documentation guide manual
    doctor health medical
    document pdf
    documentation guide howto manual tutorial walkthrough
    domain hostname
    donate donation
    down offline
    download export
    download pull
    downtime incident outage
    drawing illustration image
    dump export
    duration length time
    earning income profit revenue sale
    edit paraphrase rephrase rewrite
    edition sku tier
    edition version
    egress outbound
    embedding vector vectorize
    emotion mood sentiment tone
    employee hr staff worker
    encrypt encryption
    end finish
    endpoint url
    engagement interaction
    enroll register signup
    enter fill input type
    entry item record row
    enumerate inventory list show
    environment stage
    epic initiative
    epic sprint story
    equity share stock ticker
    error exception failure problem
    estimate forecast predict prediction projection
    evict expel kick remove
    exam quiz test
    examine inspect
    example sample template
    excel sheet spreadsheet
    excel spreadsheet workbook
    exchange replace swap switch
    execute launch run start trigger
    execution job run task
    execution runtime
    exercise fitness workout
    exif metadata
    expand extend grow increase
    experiment test
    expiration expiry retention ttl
    exposure risk
    external public
    extract parse
    facet filter
    fact trivia
    failure fault outage
    fan follower subscriber
    faq knowledge wiki
    favorite wishlist
    fee surcharge
    fetch pull
    film movie tv
    finance invest investment market stock trading
    finetune train
    fire kick run
    firewall rule
    fix remediate repair resolve solve
    fixture game match
    flag toggle
    flow process workflow
    forever permanent
    form poll questionnaire survey
    format lint
    forward redirect
    fqdn hostname
    fraud scam
    freeze pause suspend
    function lambda
    funny humor joke
    gateway proxy
    generate produce
    geolocation location
    gift present
    git github repository
    glossary term
    goods item merchandise product
    gpt llm
    grade mark score
    grammar spelling typo
    grammar syntax
    grounding knowledge rag retrieval
    group team
    grow increase raise
    grow replica resize scale shrink size
    guardrail policy
    guest visitor
    guide onboarding setup tutorial
    headline title
    health probe
    hide mask redact
    hire recruit
    hold wait
    holding portfolio
    holiday leave pto vacation
    host machine server
    host node server
    hydrate import ingest load populate seed
    iac infrastructure
    identifier key
    identity principal
    identity user
    idle inactive unused
    import upload
    impression view
    improve optimize recommendation tune
    inbound incoming
    inbound ingress
    inbox mail mailbox
    index search
    indicator kpi metric
    insert put write
    insight trend
    instance machine
    instance server
    instruction prompt
    instrument monitor observability telemetry trace
    interval period range
    inventory stock warehouse
    invitation invite
    invoice receipt
    iterate loop
    iteration milestone sprint
    keep persist save store
    keyvault secret vault
    kql kusto query
    lake warehouse
    landing page
    law lawyer legal
    law regulation
    layer stack
    layoff termination
    league ranking standing
    lease lock
    lease rent rental
    leave resign
    legacy old
    limit threshold
    limit throttle
    lineage origin provenance
    link page site url web website
    live stream
    location map
    location place region
    location region zone
    log output print
    log record
    machine vm
    mailing newsletter
    maintenance patch upgrade
    mask obfuscate
    maximum peak
    meeting minutes notes
    member people person user
    member subscriber
    memo note
    memory ram
    mention reference
    merchant seller shop store vendor
    merge reconcile
    metadata property tag
    metric monitor statistic telemetry
    migrate move transfer
    move postpone reschedule update
    move relocate
    music soundtrack
    mute silence snooze suppress
    narrate narration speak speech tts voice voiceover
    network subnet vnet vpc
    next upcoming
    node worker
    note notebook
    number phone
    ocr recognize
    old outdated stale
    organization tenant
    outbound outgoing
    overview summary
    page pagination paging
    paragraph section
    partition shard
    passphrase password
    pause stop suspend
    payout transfer withdrawal
    percentile quantile
    permission share
    pin star
    placeholder variable
    plan roadmap strategy
    plan tier
    poem poetry
    post publish send submit
    post thread
    post tweet
    postcode zip zipcode
    preview sample
    principal user
    prioritize rank
    producer publisher sender
    product sku
    profanity swear
    pronounce pronunciation
    proposal quote
    protect secure security
    pubsub topic
    push upload
    put upload
    query sql statement
    question quiz
    quiz trivia
    quote saying
    rating review score
    reboot reset
    reboot restart
    receiver recipient
    recognize transcribe
    recover reset restore revert rollback undo
    refresh regenerate renew rotate
    refresh sync update
    refund return
    relation relationship
    release unlock
    rename update
    reorder sort
    replica replication
    report statistic
    report summary
    repository store
    repost retweet
    rerun retry
    revision version
    roster schedule shift
    scene storyboard
    seat ticket
    service workload
    sheet table
    slot window
    sms text
    song track tune
    step task
    subtask task
    supplier vendor
    synonym thesaurus
    tax vat
    training workout
    update upgrade
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
    others: dict[str, frozenset[str]] = {}
    for line in lines.strip().splitlines():
        group = frozenset(map(stem, line.split()))
        for word in group:
            others[word] = others.get(word, frozenset()) | group - {word}
    return others
