"""What queries want done, what tools do, and that a search goes by it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.search import KeywordIndex
from broker.search.actions import Action, action_of_query, action_of_tool
from broker.search.words import written_words
from tests.broker.search.tools import tool


def done_by(name: str, summary: str) -> Action:
    return action_of_tool(written_words(name), written_words(summary), summary)


DOMAINS = [
    tool("dns", "list_domains", "List all domains of the account."),
    tool("dns", "get_domain", "Get one domain by its name."),
    tool("dns", "create_domain", "Create a domain in the account. All domains have a name."),
    tool("dns", "update_domain", "Update the settings of a domain."),
    tool("dns", "delete_domain", "Delete a domain from the account."),
]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("What domains do we have?", "list_domains"),
        ("How many domains are there", "list_domains"),
        ("please show me all my domains", "list_domains"),
        ("Show me the details of the domain <name>", "get_domain"),
        ('What is known about the domain "example.org"?', "get_domain"),
        ("make a domain", "create_domain"),
        ("Can you rename my domain?", "update_domain"),
        ("I would like to erase the domain <name>", "delete_domain"),
        ("How do I remove domains?", "delete_domain"),
        ("After the move to <host>, please erase the domain <name>", "delete_domain"),
        ("The domain <name> is too old, so get rid of it", "delete_domain"),
        ("The domain <name> should be dropped", "delete_domain"),
        ("The domain <name> should no longer be there", "delete_domain"),
        ("We don't need the domain <name>", "delete_domain"),
        ("Can I change the name of my domain?", "update_domain"),
        ("My domain should be called <other>", "update_domain"),
        ("Decommission the domain <domain>", "delete_domain"),
        ("For the audit I need to see all domains of <account>", "list_domains"),
    ],
)
def test_a_query_finds_the_tool_that_does_what_it_asks(query: str, best: str) -> None:
    index = KeywordIndex()
    index.replace("dns", DOMAINS)
    assert index.rank(query)[0].spec.name == best


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("Show the queue <one>. Erase the topic <other>.", {"get_queue", "delete_topic"}),
        ("Erase the queue <one>, then show the topic <other>.", {"delete_queue", "get_topic"}),
        ("Erase the topic <one>.\nNow show me the queue <other>.", {"delete_topic", "get_queue"}),
    ],
)
def test_each_sentence_finds_the_tool_that_does_what_it_asks(query: str, best: set[str]) -> None:
    index = KeywordIndex()
    done = [
        tool("bus", f"{verb}_{thing}", f"{verb} a {thing}.")
        for verb in ("get", "delete")
        for thing in ("queue", "topic")
    ]
    index.replace("bus", done)
    assert {found.spec.name for found in index.rank(query)[:2]} == best


@pytest.mark.parametrize(
    ("text", "kinds", "is_many", "thing", "head"),
    [
        ("", set(), None, set(), ""),
        ("domain", set(), None, {"domain"}, "domain"),
        ("domains of my account", {"read"}, True, {"domain"}, "domain"),
        ("feed the cats", set(), None, {"feed", "cat"}, "cat"),
        ("our cats must eat", set(), None, {"cat", "eat"}, "eat"),
        ("the scale set is old", set(), None, {"scale", "set"}, "set"),
        ("what is the status of run 12", {"read"}, False, {"run", "12"}, "run"),
        ("show the details of my storage accounts in <group>", {"read"}, True, {"storag", "account"}, "account"),
        ("add a row to the table", {"create", "change"}, False, {"row"}, "row"),
        ("list VMs", {"read"}, None, {"vm"}, "vm"),
        ("hello, who?", {"read"}, None, set(), ""),
        ("the queue is full; kill it", {"remove", "stop"}, False, {"queue"}, "queue"),
        ("Before I delete the queue, list its messages", {"read"}, True, {"messag"}, "messag"),
        ("How often does a house burn?", {"read"}, False, {"hous", "burn"}, "burn"),
        ("How are the houses built?", {"read"}, False, {"hous", "built"}, "built"),
        ("How?", {"read"}, None, set(), ""),
        ("Did the house burn?", {"read"}, False, {"hous", "burn"}, "burn"),
        ("Which rules could block my house?", {"read"}, True, {"rule"}, "rule"),
        ("Permanently delete the queue", {"remove"}, False, {"queue"}, "queue"),
        ("Please double check the queue", {"check", "read"}, False, {"queue"}, "queue"),
        ("the monthly report", set(), None, {"month", "report"}, "report"),
        ("list each queue", {"read"}, True, {"queue"}, "queue"),
        ("show the rows stored in my table", {"read"}, True, {"row"}, "row"),
        ("show the boxes holding my books", {"read"}, True, {"box"}, "box"),
        ("show the load testing in it", {"read"}, False, {"load", "test"}, "test"),
        ("Which queues exist?", {"read"}, True, {"queue"}, "queue"),
        ("I need a queue, can you make one?", {"create", "change"}, False, {"queue"}, "queue"),
        ("I sell a car. Delete the queue", set(), None, {"sell", "car"}, "car"),
    ],
)
def test_the_beginning_of_a_query_says_kind_number_and_thing(
    *, text: str, kinds: set[str], is_many: bool | None, thing: set[str], head: str
) -> None:
    assert replace(action_of_query(text), verb="") == Action(frozenset(kinds), is_many, frozenset(thing), head)


def test_an_amount_is_not_spelt_anew() -> None:
    action = action_of_query("How many messages are there?", lambda word: "any" if word == "many" else word)
    assert action.kinds == {"read"}
    assert action.thing == {"messag"}


def test_a_tool_that_is_named_by_the_verb_of_the_query_does_what_it_asks() -> None:
    index = KeywordIndex()
    longer = tool("doors", "open_it", "A door, for those who want it to be so.")
    index.replace("doors", [longer, tool("doors", "get_open_it", "A door.")])
    assert index.rank("Open the door")[0].spec.name == "open_it"
    assert action_of_query("Open the door").verb == "open"
    assert action_of_query("How do I open the door?").verb == "open"
    assert action_of_query("The open door").verb == action_of_query("Which door?").verb == ""


@pytest.mark.parametrize(
    ("name", "description", "kinds", "is_many"),
    [
        ("storage_account_create", "", {"create"}, False),
        ("send_messages", "Send messages", {"send"}, None),
        ("house", "Create or update a house.", {"create", "change"}, False),
        ("get_house", "One of the houses.", {"read"}, False),
        ("send_messages_batch", "Send messages", {"send"}, True),
        ("plan_get", "Creates a plan.", {"create", "read"}, False),
        ("getCalendarEvents", "Get events", {"read"}, True),
        ("get_files_id", "Retrieves the details of a file.", {"read"}, False),
        ("container_get", "Show/list containers", {"read"}, True),
        ("blob_get", "Show one blob, or all of them", {"read"}, None),
        ("search_field", "Find fields", {"read"}, None),
        ("copywriter", "Get suggestions for a text", {"read"}, True),
        ("", "Get suggestions for a text", {"read"}, True),
        ("", "", set(), None),
        ("ÿ\x00\ud800", "\ud800", set(), None),
    ],
)
def test_the_name_of_a_tool_says_kind_and_number(
    *, name: str, description: str, kinds: set[str], is_many: bool | None
) -> None:
    done = done_by(name, description)
    assert done.kinds == kinds
    assert done.is_many is is_many


@pytest.mark.parametrize(
    ("name", "thing", "head"),
    [
        ("storage_blob_get", {"storag", "blob"}, "blob"),
        ("queue_details", {"queue"}, "queue"),
        ("get_buckets_in_cluster", {"bucket"}, "bucket"),
        ("list_runs_2", {"run", "2"}, "run"),
        ("in_get", set(), ""),
    ],
)
def test_the_name_of_a_tool_says_its_thing(*, name: str, thing: set[str], head: str) -> None:
    done = done_by(name, "")
    assert done.thing == thing
    assert done.head == head


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("Show me a queue", "get_test_queue"),
        ("Show me a test", "get_queue_test"),
        ("Show me a resource", "testresource_get"),
    ],
)
def test_a_tool_whose_name_ends_as_the_thing_does_is_first(query: str, best: str) -> None:
    index = KeywordIndex()
    names = ("get_queue_test", "get_test_queue", "testrun_get", "testresource_get")
    index.replace("tests", [tool("tests", name, "Get it, a test, queue, run or resource.") for name in names])
    assert index.rank(query)[0].spec.name == best


def test_what_is_not_known_of_one_side_neither_agrees_nor_disagrees() -> None:
    assert Action().kinds_agree(Action(frozenset({"read"}))) is None
    assert Action(is_many=True).numbers_agree(Action()) is None
    assert Action(is_many=True).numbers_agree(Action(is_many=False)) is False


def test_a_plural_stays_one_where_tools_write_the_singular_alone() -> None:
    index = KeywordIndex()
    index.replace("homes", [tool("homes", "get_house", "Of a house."), tool("homes", "list_house", "Of each house.")])
    assert [found.spec.name for found in index.rank("show houses")] == ["list_house", "get_house"]
    assert [found.spec.name for found in index.rank("show a house")] == ["get_house", "list_house"]


@given(st.text(), st.text())
def test_no_text_is_too_odd(one: str, other: str) -> None:
    assert action_of_query(one).kinds <= {"read", "check", "create", "change", "remove", "run", "stop", "send", "buy"}
    assert isinstance(done_by(one, other), Action)
