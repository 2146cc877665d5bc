from __future__ import annotations

import itertools
import random
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.search import KeywordIndex
from codegen import ToolAnnotations, ToolSpec
from tests.broker.search.tools import TOOLS, tool


@pytest.fixture(scope="module")
def index():
    index = KeywordIndex()
    for server, specs in TOOLS.items():
        index.replace(server, specs)
    return index


def names(index, query, **options):
    return [hit.spec.name for hit in index.rank(query, **options)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("commit history", "git_log"),
        ("COMMIT", "git_commit"),
        ("branch delete", "gitBranchDelete"),
        ("deleting branches", "gitBranchDelete"),
        ("Delete the SQL database <database_name> from server <server_name>", "sql_db_delete"),
        ("drop a db", "sql_db_delete"),
        ("List all Event Grid topics", "eventgrid_topic_list"),
        ("gitbranch", "gitBranchDelete"),
        ("weahter", "get_forecast"),
        ("forcast", "get_forecast"),
        ("latitude", "get_forecast"),
        ("forec", "get_forecast"),
        ("fore*", "get_forecast"),
        ("meteo", "météo_paris"),
        ("temperature à paris", "météo_paris"),
        ("天气", "tianqi"),
        ("storage topics", "eventgrid_topic_list"),
        ("How will the weather be tomorrow?", "get_forecast"),
    ],
)
def test_a_query_finds_the_tool_it_means(index, query, first):
    assert names(index, query)[0] == first


def test_each_sentence_of_a_query_finds_its_tool(index):
    found = names(index, "I want to see the commit history of my repository. Then tell me the weather of Monday.")
    assert {"git_log", "get_forecast"} <= set(found[:3])


def test_words_that_no_tool_says_find_nothing(index):
    assert names(index, "xylophone") == []
    assert names(index, "") == []
    assert names(index, "?!* <>") == []


def test_a_query_of_stop_words_finds_the_tools_that_say_them(index):
    assert "get_forecast" in names(index, "of the")


def test_what_is_not_admitted_is_not_found(index):
    assert names(index, "delete", admits=lambda spec: spec.server == "git") == ["gitBranchDelete"]


def test_a_replaced_listing_is_found_and_the_old_one_is_not():
    index = KeywordIndex()
    index.replace("one", [tool("one", "paint_wall"), tool("one", "mix_colours")])
    index.replace("two", [tool("two", "paint_car")])
    index.replace("one", [tool("one", "mix_colours"), tool("one", "clean_brush")])
    assert names(index, "paint") == ["paint_car"]
    assert names(index, "brush") == ["clean_brush"]
    assert len(index) == 3
    index.replace("one", [])
    index.replace("one", [])
    assert names(index, "colours brush") == []
    assert names(index, "paint") == ["paint_car"]


def test_a_tool_scores_the_same_however_the_index_came_to_be(index):
    other = KeywordIndex()
    for _ in range(5):
        for server in reversed(TOOLS):
            other.replace(server, [])
            other.replace(server, TOOLS[server][::-1])
    for query in ("delete database", "weather and commits", "list"):
        assert {hit.spec: pytest.approx(hit.score) for hit in index.rank(query)} == {
            hit.spec: hit.score for hit in other.rank(query)
        }


def test_scores_follow_tools_that_come_and_go_between_queries(index):
    other = KeywordIndex()
    other.replace("git", TOOLS["git"])
    other.replace("more", [tool("more", f"delete_{number}", "Deletes a commit.") for number in range(9)])
    assert names(other, "delete commits")
    other.replace("more", [])
    assert set(names(other, "delete commits")) == {"git_log", "git_commit", "gitBranchDelete"}
    for server in TOOLS:
        other.replace(server, TOOLS[server])
    assert {hit.spec: pytest.approx(hit.score) for hit in index.rank("delete commits")} == {
        hit.spec: hit.score for hit in other.rank("delete commits")
    }


def test_common_words_add_to_tools_that_rare_words_found():
    index = KeywordIndex()
    index.replace("many", [tool("many", f"list_{number}_things", "Lists many things.") for number in range(8_000)])
    index.replace("few", [tool("few", "list_zebras", "Lists zebras."), tool("few", "zebras", "Zebras.")])
    assert names(index, "list zebras", count=10)[:2] == ["list_zebras", "zebras"]


WORDS = [
    tool("many", "create_repository", "Create a repository for the team. Casts nothing."),
    tool("many", "list_repositories", "List all repositories."),
    tool("many", "delete_file", "Delete a file from a repository."),
    tool("many", "river_delta", "Measure a delta."),
    tool("many", "get_user_info", "Get what is known of a user."),
    tool("many", "get_forecast", "Get the weather forecast."),
    tool("many", "close_issue", "Close an issue whether it is done or not."),
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create repositroy", "create_repository"),
        ("repositry", "list_repositories"),
        ("delte file", "delete_file"),
        ("forcast", "get_forecast"),  # not "for" and "cast"
        ("isue", "close_issue"),
        ("wether", "get_forecast"),  # whether or weather: both are tried
        ("getuserinfo", "get_user_info"),
        ("repository*", "list_repositories"),  # whose stem is another
        ("delte the repository file", "delete_file"),
        ("crate repository", "create_repository"),
        ("lisst the repositories", "list_repositories"),
        ("waht repositories do we have", "list_repositories"),
    ],
)
def test_a_slip_of_the_keys_finds_what_was_meant(query, first):
    index = KeywordIndex()
    index.replace("many", WORDS)
    assert names(index, query)[0] == first


def test_a_word_that_is_said_no_more_is_not_what_was_meant():
    index = KeywordIndex()
    index.replace("many", WORDS)
    assert names(index, "rivr")
    index.replace("many", [one for one in WORDS if one.name != "river_delta"])
    assert names(index, "rivr") == []
    assert names(index, "riv*") == []


def test_words_of_tools_that_come_and_go_are_not_kept_for_ever():
    index = KeywordIndex()
    texts = [
        " ".join(first + second + third + last for third, last in itertools.product("bcdfghklmn", repeat=2))
        for second, first in itertools.islice(itertools.product(ascii_lowercase, repeat=2), 300)
    ]
    for text in texts:
        index.replace("churn", [tool("churn", "t", text)])
    assert len(index._vocabulary._stems) < 20_000
    assert len(index._vocabulary._written) < 20_000
    assert names(index, "nlbb") == ["t"]
    index.replace("churn", [tool("churn", "again", texts[0])])
    assert names(index, "aabx") == ["again"]


@pytest.fixture
def strange():
    """Returns a text of so many letters, in which nearly each pair of letters is a word that no other text has."""
    draw = random.Random(7)  # noqa: S311 - no secret
    return lambda letters: "".join(map(chr, draw.choices(range(0x4E00, 0x9FFF), k=letters)))


def test_a_server_with_ever_new_words_has_room_for_some_of_them_and_takes_none_from_others(strange):
    index = KeywordIndex()
    index.replace("endless", [tool("endless", f"t{number}", strange(4_000)) for number in range(40)])
    assert len(index._postings.by_word) <= 22_000
    assert len(index._vocabulary._stems) <= 22_000
    index.replace("weather", [tool("weather", "get_forecast", "Tells of cumulonimbus.")])
    assert names(index, "cumulonimbus") == ["get_forecast"]
    index.replace("endless", [tool("endless", "polish", "Polishes marble.")])
    assert names(index, "marble") == ["polish"]


def test_words_of_a_tool_that_stays_count_when_its_server_lists_others(strange):
    index = KeywordIndex()
    tools = []
    for number in range(40):
        tools.append(tool("endless", f"t{number}", strange(4_000)))
        index.replace("endless", tools)
    assert len(index._postings.by_word) <= 22_000


def test_of_a_tool_with_very_many_words_the_first_count(strange):
    index = KeywordIndex()
    about = {f"plum{number}": {"type": "string", "description": strange(300)} for number in range(40)}
    schema = {"type": "object", "properties": about | {"quince": {"type": "string"}}}
    index.replace("s", [ToolSpec("s", "pick", None, "Picks fruit.", schema, None, ToolAnnotations())])
    assert len(index._postings.by_word) <= 1_000
    assert [names(index, query) for query in ("fruit", "plum0", "quince")] == [["pick"], ["pick"], []]
    schema = {"type": "object", "properties": {"plum": {"type": "string"}, "quince": {"type": "string"}}}
    index.replace("s", [ToolSpec("s", "pick", None, strange(4_000), schema, None, ToolAnnotations())])
    assert names(index, "pick") == ["pick"]


@given(order=st.permutations(["c", "a", "b", "d"]))
def test_tools_that_fit_alike_come_in_the_order_of_their_names(order):
    index = KeywordIndex()
    for server in order:
        index.replace(server, [tool(server, "list_ponds", "Lists ponds.")])
    assert [hit.spec.server for hit in index.rank("list ponds")] == ["a", "b", "c", "d"]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = JSON | st.fixed_dictionaries({"properties": JSON})


@given(query=st.text())
def test_no_query_fails(index, query):
    for hit in index.rank(query):
        assert hit.spec in TOOLS[hit.spec.server]


@given(st.text(min_size=1), st.none() | st.text(), st.text(), SCHEMAS)
def test_no_tool_fails_to_be_indexed(name, title, description, schema):
    index = KeywordIndex()
    index.replace("s", [ToolSpec("s", name, title, description, schema, None, ToolAnnotations())])
    index.rank(f"{name} {description}")
    index.replace("s", [])
    assert len(index) == 0
    assert index.rank(name) == []
