from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.store import Store
from broker.tiers import CallStatistics, TierScores, ToolStatistics
from broker.tiers.scores import score
from broker.tools.catalog import Catalog
from codegen import ToolAnnotations, ToolSpec

NOW = 1_000_000_000.0
DAY = 86_400.0


def calls(count=100, *, successes=None, each_ms=50.0, last_at=NOW) -> ToolStatistics:
    return ToolStatistics(count, count if successes is None else successes, count * each_ms, last_at)


@pytest.mark.parametrize(
    ("statistics", "points", "tier"),
    [
        (calls(), 1.0, "hot"),
        (calls(1_000_000), 1.0, "hot"),
        (calls(50), 0.8, "hot"),
        (calls(50, last_at=NOW - 7 * DAY), 0.75, "warm"),
        (calls(50, each_ms=5_000), 0.6, "warm"),
        (calls(50, each_ms=60_000, successes=25), 0.45, "standard"),
        (calls(1, successes=0, each_ms=60_000), 0.104, "cold"),
        (ToolStatistics(), 0.0, "cold"),
    ],
)
def test_a_score_weighs_popularity_success_latency_and_recency(statistics, points, tier):
    found = score(statistics, NOW)
    assert found.score == pytest.approx(points)
    assert found.tier == tier


@given(
    st.builds(
        ToolStatistics,
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.floats(0, 1e9),
        st.floats(0, 2e9),
    ).filter(lambda one: one.successes <= one.calls)
)
def test_every_score_is_between_nothing_and_one(statistics):
    assert 0.0 <= score(statistics, NOW).score <= 1.0


def test_statistics_outlive_the_process_and_processes_add_up(tmp_path):
    path = tmp_path / "store.sqlite3"
    with Store(path) as store, Store(path) as other_store:
        one = CallStatistics(store, clock=lambda: NOW)
        other = CallStatistics(other_store, clock=lambda: NOW + 1)
        one.note("git", "log", is_success=True, seconds=0.1)
        assert one.of("git", "log") == ToolStatistics(1, 1, 100.0, NOW)
        assert one.flush()
        assert not one.flush()
        other.note("git", "log", is_success=False, seconds=0.3)
        assert other.flush()
        assert other.of("git", "log") == ToolStatistics(2, 1, 400.0, NOW + 1)
    with Store(path) as store:
        assert CallStatistics(store).of("git", "log").success_rate == 0.5
        assert CallStatistics(store).of("git", "status") == ToolStatistics()


def test_a_store_that_cannot_be_written_costs_the_statistics_alone(tmp_path):
    with Store(tmp_path / "store.sqlite3") as store:
        statistics = CallStatistics(store)
        store.execute("PRAGMA query_only = ON")
        statistics.note("git", "log", is_success=True, seconds=0.1)
        assert statistics.flush()
        assert statistics.of("git", "log").calls == 1
        store.execute("PRAGMA query_only = OFF")
        assert statistics.flush()
        assert statistics.of("git", "log").calls == 1


def test_tools_are_ranked_by_score_and_the_others_in_turn():
    catalog = Catalog(["a", "b"])
    for server in ("a", "b"):
        specs = [ToolSpec(server, f"t{n}", None, "", {}, None, ToolAnnotations()) for n in range(3)]
        catalog.replace(server, specs)
    statistics = CallStatistics(clock=lambda: NOW)
    scores = TierScores(catalog, statistics, clock=lambda: NOW)
    assert [entry.qualified_name for entry in scores.ranked()] == ["a.t0", "b.t0", "a.t1", "b.t1", "a.t2", "b.t2"]
    for _ in range(3):
        statistics.note("b", "t2", is_success=True, seconds=0.01)
    statistics.note("a", "t1", is_success=True, seconds=0.01)
    assert scores.ranked()[0].qualified_name == "a.t0"  # computed in the background, not with each call
    scores.recompute()
    assert [entry.qualified_name for entry in scores.ranked()][:3] == ["b.t2", "a.t1", "a.t0"]
    assert scores.of(catalog.lookup("b.t2")).score == pytest.approx(0.612)
