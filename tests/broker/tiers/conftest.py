"""Real tools of the corpora that lie beside the repository, where they do, and what counts their tokens."""

from __future__ import annotations

import importlib
from collections import defaultdict

import pytest

from benchmarks.search.corpus import CORPORA, many_tools
from broker.tiers import CallStatistics, Tiers, TierScores
from broker.tools.catalog import Catalog
from broker.tools.categories import Categories

TOOLS = 5_000


@pytest.fixture(scope="session")
def corpus():
    """A catalog of 5,000 real tools."""
    if not CORPORA.is_dir():
        pytest.skip("the corpora do not lie beside the repository")
    of_server = defaultdict(list)
    for spec in many_tools(TOOLS):
        of_server[spec.server].append(spec)
    catalog = Catalog(of_server)
    for server, specs in of_server.items():
        catalog.replace(server, specs)
    return catalog


@pytest.fixture
def make_tiers():
    """Return the tiers of a catalog with nothing called yet."""

    def make(catalog, counter=None, **categories) -> Tiers:
        statistics = CallStatistics()
        scores = TierScores(catalog, statistics)
        return Tiers(catalog, Categories(catalog, **categories), statistics, scores, counter)

    return make


@pytest.fixture(scope="session")
def tokens():
    """Count the tokens of a text with the vocabulary that is in the package."""
    encoding = importlib.import_module("bpe_openai").get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))
