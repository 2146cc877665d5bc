"""A sandbox for hostile scripts."""

from __future__ import annotations

import pytest

from sandbox import Sandbox
from sandbox.image import load_image


@pytest.fixture(scope="session")
def image():
    return load_image()


@pytest.fixture
async def sandbox(image):
    async with Sandbox(cache=image.compiled.parent) as sandbox:
        yield sandbox
