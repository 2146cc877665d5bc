"""One sandbox for the scripts of a module: what one of them has broken would show in those after it."""

from __future__ import annotations

import pytest

from sandbox import Sandbox


@pytest.fixture(scope="module", params=["asyncio"])
def anyio_backend(request):
    return request.param


@pytest.fixture(scope="module", params=["thread", "process"])
async def sandbox(image, request):
    async with Sandbox(cache=image.compiled.parent, isolation=request.param) as sandbox:
        yield sandbox
