"""Well-known products by what they are: an "in-memory cache" may be "redis".

Above: queries.py. Below: short_forms.py, words.py. Tools say the product, and people say what they need, or the name
that it had before. Who names one of the products of a line wants no other. A product is left out whose name is a word
of other tools ("Square").
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from broker.search.short_forms import forms_among
from broker.search.words import stems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.search.short_forms import Wording, Wordings

# Before the colon, what people say; after it, what tools may say in its place.
_PRODUCTS = """
    a b test, feature flag, feature toggle: app configuration, flagsmith, growthbook, launchdarkly, statsig, unleash
    accounting, bookkeeping: freshbooks, quickbooks, xero
    ai model catalog, machine learning platform, model hub: foundry, hugging face, sagemaker, vertex
    alerting, on call, pager, paging: opsgenie, pagerduty
    api gateway, api management: apigee, apim, kong
    app hosting, web app hosting, web hosting: app platform, app service, appservice, heroku, netlify, vercel
    app insights, application insights: azure monitor
    app telemetry, application monitoring, application telemetry: azure monitor, datadog, dynatrace, new relic
    applicant tracking: ashby, workable
    appointment booking, scheduling link: calendly
    artifact repository, package repository: artifactory, nexus
    availability check, availability test, uptime check, uptime monitor, uptime test: pingdom, web test
    big data, spark cluster: databricks, dataproc, hadoop
    browser automation: playwright, puppeteer, selenium
    bug tracker, issue tracker, issue tracking, ticket system: github issues, jira, linear, redmine, youtrack
    build server: circleci, github actions, jenkins, teamcity
    calendar invite, meeting invite: google calendar, outlook
    chat app, team chat: discord, mattermost, microsoft teams, slack
    chat model, language model, llm: anthropic, claude, gemini, ollama, openai
    cloud drive, file share, file sync, shared drive: dropbox, google drive, onedrive, sharepoint
    cloud function, function as a service, serverless: azure functions, cloud run, function app, lambda
    cloud storage, object storage, object store: blob, bucket, gcs, s3, storage account
    code hosting, code repository, source control: bitbucket, gitea, github, gitlab
    code quality, static analysis: semgrep, sonarqube
    columnar database, data explorer: clickhouse, druid, kusto
    compute instance, server instance, virtual server: compute engine, droplet, ec2, vm
    container cluster, container orchestration, container orchestrator: aks, eks, gke, k8s, kubernetes
    container image registry, docker registry, image registry: acr, container registry, ecr
    content delivery: akamai, cloudflare, cloudfront, fastly
    crash report, error tracking: bugsnag, rollbar, sentry
    crypto, cryptocurrency: binance, bitcoin, coinbase, coingecko, ethereum
    customer database, sales pipeline: hubspot, pipedrive, salesforce
    dashboard: grafana, kibana, looker, superset, tableau
    data lake: adls, lake storage, onelake, s3
    data pipeline, etl: airflow, dagster, data factory, dbt, fivetran
    data warehouse: bigquery, redshift, snowflake, synapse
    design file, mockup: figma, sketch
    diagram: drawio, excalidraw, mermaid, plantuml
    directory service, identity provider: active directory, auth0, azure ad, entra, keycloak, ldap, okta
    distributed cache, in memory cache, in memory database, key value cache, key value store: memcached, redis, valkey
    document database, document store, nosql, nosql database: cosmos, couchdb, dynamodb, firestore, mongodb
    domain registration: godaddy, namecheap
    e signature, electronic signature: docusign, dropbox sign
    email api, email service, transactional email: mailgun, postmark, resend, sendgrid, ses
    email marketing, newsletter: brevo, klaviyo, mailchimp
    encyclopedia: wikipedia
    entra, entra id: active directory, azure ad
    event bus, event routing: event grid, eventbridge, eventgrid
    event stream, event streaming, stream ingestion: event hubs, eventhubs, kafka, kinesis
    graph database: gremlin, neo4j, neptune
    help desk, helpdesk, support desk: freshdesk, intercom, servicenow, zendesk
    home automation, smart home: home assistant
    infrastructure as code: bicep, cloudformation, iac, pulumi, terraform
    instant message, messenger: telegram, whatsapp
    knowledge base, team wiki, wiki: confluence, notion
    llm observability, llm tracing: langfuse, langsmith
    load test, performance test, stress test: gatling, jmeter, k6, load testing, locust
    log aggregation, log search, log store: elasticsearch, log analytics, loki, opensearch, splunk
    machine translation: deepl
    message broker, message queue, queue service: pubsub, rabbitmq, service bus, servicebus, sqs
    movie database: imdb, omdb, tmdb
    music streaming: deezer, soundcloud, spotify
    note taking, note app: evernote, joplin, notion, obsidian, onenote
    object relational mapper, orm: drizzle, prisma, sqlalchemy
    online shop, online store, webshop: magento, shopify, woocommerce
    password manager, secret manager, secret store: 1password, bitwarden, key vault, keyvault, vault
    payment, payment processor: adyen, paypal, stripe
    payroll: adp, gusto
    preprint, research paper: arxiv, pubmed, semantic scholar
    project board, task board: asana, clickup, linear, trello
    relational database: mariadb, mysql, postgres, postgresql, sql, sqlite
    remote desktop, virtual desktop: avd, rdp
    site builder: squarespace, webflow, wix, wordpress
    social media: bluesky, facebook, instagram, linkedin, mastodon, twitter
    spreadsheet: airtable, excel, google sheets
    stock price, stock quote: alpha vantage, finnhub, polygon, yahoo finance
    survey: google forms, surveymonkey, typeform
    table reservation, restaurant reservation: opentable
    text message: sms, twilio
    time series database: influxdb, prometheus, timescale
    time tracking: clockify, toggl
    to do list, todo list: google tasks, ticktick, todoist
    trace, tracing: jaeger, opentelemetry, zipkin
    vector database, vector search, vector store: ai search, chroma, milvus, pinecone, qdrant, weaviate
    video call, video conference, video meeting: google meet, microsoft teams, webex, zoom
    video site: vimeo, youtube
    voice generation: elevenlabs, polly
    weather: accuweather, openweather
    web analytics: google analytics, matomo, plausible
    web search: bing, brave, duckduckgo, exa, serper, tavily
    whiteboard: excalidraw, miro
    workflow automation: logic apps, n8n, power automate, zapier
"""


def products_for(said: Sequence[str]) -> Iterator[tuple[Wording, list[Wording]]]:
    """Return each kind of product that is among the stems of a text, with the products of this kind."""
    text = f" {' '.join(said)} "
    for kind, products in forms_among(said, _known()):
        if not any(f" {' '.join(product)} " in text for product in products):
            yield kind, products


@lru_cache(maxsize=1)
def _known() -> Wordings:
    known: Wordings = {}
    for line in _PRODUCTS.strip().splitlines():
        kinds, products = ([tuple(stems(name)) for name in names.split(",")] for names in line.split(":"))
        for kind in kinds:
            known.setdefault(kind[0], {}).setdefault(kind, []).extend(products)
    return known
