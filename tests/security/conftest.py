"""A sandbox for hostile scripts."""

from __future__ import annotations

import pytest

from sandbox import Sandbox
from sandbox.image import load_image


@pytest.fixture(scope="session")
def image():
    return load_image()


@pytest.fixture(params=["thread", "process"])
async def sandbox(image, request):
    async with Sandbox(cache=image.compiled.parent, isolation=request.param) as sandbox:
        yield sandbox
