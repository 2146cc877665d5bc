"""What the tests of the guest share."""

from __future__ import annotations

import pytest

from sandbox import Raised


@pytest.fixture
def raised(run):
    """Runs a script that raises, to what it raised."""

    async def raised(script, **options) -> Raised:
        outcome = (await run(script, **options)).outcome
        assert isinstance(outcome, Raised), outcome
        return outcome

    return raised
