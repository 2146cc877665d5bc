"""Each sign by which tools are ranked has its part in a score, and the part that it should have."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from broker.search import KeywordIndex
from broker.search.weights import Ranking
from tests.broker.search.tools import tool

FILLING = [tool("filling", f"nothing{number}", "An event. A grid. Nothing of it.") for number in range(20)]
HOUSES = "Of a house."

# A sign, its value when it says nothing, a query, and the name and description of a tool.
RAISED = [
    ("same", 0.0, "invoice", "x", "A bill."),
    ("alike", 0.0, "picture", "x", "A photo."),
    ("asked", 0.0, "how big is it", "x", "A size."),
    ("joined", 0.0, "event grid", "eventgrid", "Of all."),
    ("spelt", 0.0, "forcast", "x", "A forecast."),
    ("guessed", 0.0, "forec", "x", "A forecast."),
    ("acronym", 0.0, "FGC", "x", "For Fine Garden Chairs."),
    ("form", 0.0, "poi", "x", "A point of interest."),
    ("pair", 0.0, "red house", "x", "A red house."),
    ("name", 0.0, "house", "house", HOUSES),
    ("action", 0.0, "delete the house", "erase_it", HOUSES),
    ("number", 0.0, "list houses", "list_houses", HOUSES),
    ("thing", 0.0, "create a house", "create_house", HOUSES),
    ("head", 0.0, "create a house", "create_house", HOUSES),
    ("parameters", 0.0, "house", "x", HOUSES),
    ("server", 0.0, "house", "x", HOUSES),
    ("server_name", 0.0, "the house of One", "x", HOUSES),
]
LOWERED = [
    ("weak", 1.0, "good house", "x", "Good."),
    ("action", 0.0, "delete the house", "create_it", HOUSES),
    ("number", 0.0, "list houses", "get_house", "One of the houses."),
    ("part", 0.0, "Paint the house red. Swim in the river.", "x", "A house. A river."),
]


def score(query: str, name: str, description: str, ranking: Ranking) -> float:
    index = KeywordIndex(ranking=ranking)
    index.replace("filling", FILLING)
    index.replace("one", [tool("one", name, description)])
    return next(found.score for found in index.rank(query) if found.spec.server == "one")


def without(sign: str, silent: float) -> Ranking:
    return replace(Ranking(), **{sign: silent})  # type: ignore[arg-type]  # the bounds are whole numbers


@pytest.mark.parametrize(("sign", "silent", "query", "name", "description"), RAISED)
def test_a_sign_that_a_tool_fits_raises_its_score(
    sign: str, silent: float, query: str, name: str, description: str
) -> None:
    assert score(query, name, description, Ranking()) > score(query, name, description, without(sign, silent))


@pytest.mark.parametrize(("sign", "silent", "query", "name", "description"), LOWERED)
def test_a_sign_that_a_tool_does_not_fit_lowers_its_score(
    sign: str, silent: float, query: str, name: str, description: str
) -> None:
    assert score(query, name, description, Ranking()) < score(query, name, description, without(sign, silent))


def test_every_sign_is_among_these() -> None:
    bounds = {"candidates", "postings", "crowd"}  # the last is a sign of several tools
    assert {case[0] for case in (*RAISED, *LOWERED)} == {field.name for field in fields(Ranking)} - bounds


def test_of_two_like_tools_that_of_the_server_with_more_that_fits_is_first() -> None:
    index = KeywordIndex()
    index.replace("a", [tool("a", "x", HOUSES)])
    index.replace("b", [tool("b", "x", HOUSES), tool("b", "y", HOUSES)])
    assert [found.spec.qualified_name for found in index.rank("house")] == ["b.x", "b.y", "a.x"]


@pytest.mark.parametrize(("crowd", "place"), [(0.0, 6), (Ranking().crowd, 4)])
def test_after_four_tools_of_a_server_one_of_another_is_seen_that_fits_nearly_as_well(crowd: float, place: int) -> None:
    index = KeywordIndex(ranking=replace(Ranking(), crowd=crowd))
    index.replace("a", [tool("a", f"x{number}", HOUSES) for number in range(6)])
    index.replace("b", [tool("b", "x", HOUSES), tool("b", "y", HOUSES)])
    found = [one.spec.qualified_name for one in index.rank("house")]
    assert found.index("b.x") == place
    assert [name for name in found if name.startswith("a.")] == [f"a.x{number}" for number in range(6)]


def test_of_like_tools_that_which_requires_only_what_the_query_names_is_first() -> None:
    index = KeywordIndex()
    required = {"w": ["window"], "x": ["house_number", "window"], "y": ["house_number"], "z": []}
    parameters = ["house_number", "window"]
    index.replace("one", [tool("one", n, HOUSES, parameters=parameters, required=r) for n, r in required.items()])
    assert [found.spec.name for found in index.rank("the house")] == ["y", "z", "x", "w"]


def test_of_like_tools_that_which_takes_what_the_query_gives_is_first() -> None:
    index = KeywordIndex()
    index.replace(
        "one", [tool("one", name, HOUSES, parameters=[takes]) for name, takes in (("x", "age"), ("y", "hue"))]
    )
    index.replace("filling", [tool("filling", "nothing", "An age. A hue.")])
    assert [found.spec.name for found in index.rank('the house of hue "red"')][:2] == ["y", "x"]
    assert [found.spec.name for found in index.rank('the house of age "9"')][:2] == ["x", "y"]


def test_a_server_is_named_by_a_word_that_is_written_as_a_name() -> None:
    ranking = without("server_name", 0.0)
    for query in ("the house of one", "One house"):
        assert score(query, "x", HOUSES, Ranking()) == score(query, "x", HOUSES, ranking)


def test_words_that_only_join_others_find_no_tool() -> None:
    index = KeywordIndex()
    index.replace("one", [tool("one", "x", HOUSES), tool("one", "y", "Now and always, across one or within.")])
    assert [found.spec.name for found in index.rank("Is one house now within reach, though always across?")] == ["x"]
    assert [found.spec.name for found in index.rank("across")] == ["y"]


def test_a_slip_in_a_short_word_counts_less_than_one_in_a_long_word() -> None:
    short, long = (score(query, "x", "A door, a cardboard.", Ranking()) for query in ("dooor", "cardbord"))
    assert short == pytest.approx(long * 5 / 8)


def test_what_a_tool_says_that_it_does_not_do_is_not_found() -> None:
    index = KeywordIndex()
    index.replace("one", [tool("one", "x", "Paints. Never sells houses.\nUse sell_car instead.")])
    assert index.rank("houses car") == []
    assert len(index.rank("paint")) == 1


def test_a_tool_that_has_gone_is_not_found_before_the_index_is_rewritten() -> None:
    index = KeywordIndex()
    tools = [tool("one", f"house_{number}", HOUSES) for number in range(10)]
    index.replace("one", tools)
    index.replace("one", tools[1:])
    assert {found.spec.name for found in index.rank("house")} == {one.name for one in tools[1:]}
