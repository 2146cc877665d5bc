"""What the tests of stubs and checks share: the corpus of real tools, where it is at hand."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.codegen.definitions import CORPUS


@pytest.fixture(scope="session")
def corpus() -> list[dict[str, Any]]:
    """Return thousands of real tool definitions."""
    if not CORPUS.exists():
        pytest.skip("the corpus of real tools is not on this machine")
    with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
