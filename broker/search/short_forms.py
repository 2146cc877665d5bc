"""Short forms of several words, and what they are short for: "nsg" is "network security group".

Above: queries.py, products.py. Below: stop_words.py, words.py. Tools say the one and people the other, or the other way
round. The list is of what is said of computers, business and the rest of the world: nothing in it is about one product.
Short forms that everybody writes and nobody speaks out ("api", "url") are not in it. Words written together or apart
are ("time zone"), unless each of them says too little ("user name"). Words for single words are in synonyms.py.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, TypeAlias

from broker.search.stop_words import stop_stems
from broker.search.words import stems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Wording: TypeAlias = "tuple[str, ...]"
"""One of the forms, by its stems."""

Wordings: TypeAlias = "dict[str, dict[Wording, list[Wording]]]"
"""What may stand for each form, by the first stem of the form."""

# The forms of a line stand for each other.
_FORMS = """
    aad, active directory
    acl, access control list
    aml, anti money laundering
    apm, application performance monitoring
    apy, annual percentage yield
    arr, annual recurring revenue
    asn, autonomous system number
    ast, abstract syntax tree, syntax tree
    aum, assets under management
    b2b, business to business
    bi, business intelligence
    bmi, body mass index
    bom, bill of materials
    byok, bring your own key, customer managed key
    cac, customer acquisition cost
    cagr, annual growth rate
    cdc, change data capture
    cdn, content delivery network
    changelog, change log
    ci cd, build pipeline
    ci cd, continuous integration delivery
    ci cd, deployment pipeline
    ci, continuous integration
    cidr, address range, address block
    cli, command line, commandline
    cmk, customer managed key
    cms, content management
    codebase, code base
    cpi, consumer price index
    crm, customer relationship management
    cta, call to action
    ctr, click through rate
    cve, common vulnerabilities and exposures
    dag, directed acyclic graph
    datacenter, data center
    dataset, data set
    datasource, data source
    datetime, date time
    dau, daily active users
    ddl, data definition language
    ddos, denial of service
    dex, decentralized exchange
    dkim, domain keys identified mail
    dlp, data loss prevention
    dlq, dead letter queue
    dm, direct message, private message
    dnd, do not disturb
    dns, domain name system
    dob, date of birth, birth date
    dr, disaster recovery
    e2e, end to end
    eda, exploratory data analysis
    eod, end of day
    eol, end of life
    eps, earnings per share
    erd, entity relationship diagram
    erp, enterprise resource planning
    eta, estimated time of arrival, arrival time
    etf, exchange traded fund
    etl, extract transform load
    ev, electric vehicle
    faq, frequently asked questions
    feature flag, feature toggle
    flowchart, flow chart
    fs, file system, filesystem
    fx, foreign exchange, exchange rate
    gc, garbage collection
    gdp, gross domestic product
    ha, high availability
    ha, home assistant
    healthcheck, health check
    hpa, horizontal pod autoscaler
    hpc, high performance computing
    hr, human resources
    hsm, hardware security module
    i18n, internationalization
    iac, infrastructure as code
    iam, identity and access management
    idp, identity provider
    iops, operations per second
    iot, internet of things
    ipo, initial public offering
    irr, internal rate of return
    k8s, kubernetes
    kb, knowledge base, knowledgebase
    kms, key management
    kpi, key performance indicator
    kv, key value
    kv, key vault, keyvault
    kyc, know your customer
    l10n, localization
    lb, load balancer, loadbalancer
    lfs, large file storage
    livestream, live stream
    llm, large language model, language model
    lms, learning management
    ltv, lifetime value
    ltv, loan to value
    mau, monthly active users
    metadata, meta data
    mfa, 2fa, multi factor authentication, two factor authentication
    ml, machine learning
    mrr, monthly recurring revenue
    mtu, maximum transmission unit
    nft, non fungible token
    ngo, non governmental organization
    nic, network interface
    nlp, natural language processing
    nps, promoter score
    npv, net present value
    nsg, network security group
    ocr, optical character recognition, text recognition
    okr, objectives and key results
    oom, out of memory
    os, operating system
    otp, one time password, one time code
    p2p, peer to peer
    pat, personal access token, access token
    pii, personal data, personally identifiable information
    pitr, point in time restore, point in time recovery
    pnl, profit and loss
    po, purchase order
    poi, point of interest
    pr, mr, pull request, merge request
    pto, paid time off, time off
    pvc, persistent volume claim
    qa, quality assurance
    qps, queries per second
    rag, retrieval augmented generation
    rbac, role assignment
    rbac, role based access control
    rca, root cause, root cause analysis
    rdp, remote desktop
    rfp, request for proposal
    rls, row level security
    rma, return merchandise
    roi, return on investment
    rpc, remote procedure call
    rto, recovery time
    sbom, software bill of materials
    screenshot, screen shot, screen capture
    sdk, software development kit
    sem, search engine marketing
    seo, search engine optimization
    serp, search results page
    sg, security group
    siem, security information and event management
    sku, pricing tier
    sku, stock keeping unit
    sla, service level agreement
    slo, service level objective
    smart contract, smartcontract
    sow, statement of work
    spf, sender policy framework
    sre, site reliability
    ssd, solid state drive
    ssh, secure shell
    sso, single sign on
    ssr, server side rendering
    stt, speech to text
    tco, total cost of ownership
    timeseries, time series
    tls, transport layer security
    tos, terms of service, terms of use
    ttl, time to live
    tts, text to speech
    tvl, total value locked
    tz, time zone, timezone
    ui, user interface
    utm, campaign tracking
    ux, user experience
    vcs, version control
    vm, virtual machine
    vmss, virtual machine scale set
    vnet, virtual network
    voicemail, voice mail
    vpc, virtual network
    vpc, virtual private cloud
    vpn, virtual private network
    vps, virtual private server
    waf, web application firewall
    webhook, web hook
    wfh, work from home
    wip, work in progress
    wishlist, wish list
    ytd, year to date
    zipcode, zip code, postal code, postcode
"""


def other_forms(said: Sequence[str]) -> Iterator[tuple[Wording, list[Wording]]]:
    """Return each form that is known here among the stems of a text, with its other forms."""
    return forms_among(said, _known())


def forms_among(said: Sequence[str], known: Wordings) -> Iterator[tuple[Wording, list[Wording]]]:
    """Return each form of `known` among the stems of a text, without its stop words, with what stands for it."""
    for start, word in enumerate(said):
        if (forms := known.get(word)) is None:
            continue
        for form, others in forms.items():
            if tuple(said[start : start + len(form)]) == form:
                yield telling(form), others


@lru_cache(maxsize=1)
def _known() -> Wordings:
    known: Wordings = {}
    for line in _FORMS.strip().splitlines():
        for form, other in permutations([tuple(stems(text)) for text in line.split(",")], 2):
            others = known.setdefault(form[0], {}).setdefault(form, [])
            if len(telling(other)) > 1 or len(other) == 1:  # "know your customer" leaves "customer"
                others.append(telling(other))
    return known


def telling(form: Wording) -> Wording:
    """Return a form without its stop words."""
    return tuple(word for word in form if word not in stop_stems())
