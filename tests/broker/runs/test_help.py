"""A script that looks at tools is shown what was described, and of other tools no more than a listing gives."""

from __future__ import annotations

import pytest

from broker import Broker

pytestmark = pytest.mark.anyio


def add(a: int, b: int = 0) -> int:
    """Adds two numbers.

    Returns their sum, always.
    """
    return a + b


@pytest.fixture
async def session():
    async with Broker(servers={"desk": [add]}) as broker:
        yield broker.session()


async def printed(session, script: str) -> str:
    result = await session.execute_code(f"import tools\ntool = getattr(tools.desk, 'ad' + 'd')\n{script}")
    assert result.error is None, result.error
    return str(result.stdout)


async def test_help_shows_the_stub_once_it_was_described_and_a_line_before(session):
    before = await printed(session, "help(tool)")
    details = await session.get_tool_details(["desk.add"])
    after = await printed(session, "help(tool)")
    assert "not described yet: get_tool_details" in before
    assert "Adds two numbers." in before
    assert "int" not in before
    assert after.strip() in details.source
    assert after.startswith("async def add(*, a: int, b: int = 0) -> int:")


async def test_a_script_that_does_not_look_is_not_sent_what_there_is_to_see(session):
    await session.get_tool_details(["desk.add"])
    assert "int" not in await printed(session, "print(getattr(tool, '__do' + 'c__'))")
