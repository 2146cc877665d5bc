"""docs/limitations.md lists the standard library of the image; this asks the image itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox import Completed, Sandbox

LIMITATIONS = Path(__file__).parent.parent / "docs" / "limitations.md"
ASK = """
import importlib, sys
def imports(name):
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True
names = sorted(name for name in sys.stdlib_module_names if not name.startswith("_"))
[[name for name in names if imports(name)], [name for name in names if not imports(name)]]
"""

pytestmark = pytest.mark.anyio


def documented() -> tuple[set[str], set[str]]:
    section = LIMITATIONS.read_text().split("### Standard library")[1].split("\n## ")[0]
    available, missing = section.split("Missing:")
    return set(re.findall(r"`(\w+)`", available)), set(re.findall(r"`(\w+)`", missing))


async def test_the_documented_standard_library_is_the_one_in_the_image():
    async with Sandbox() as sandbox:
        found = await sandbox.run(ASK)
    assert isinstance(found.outcome, Completed)
    available, missing = found.outcome.value
    assert (set(available), set(missing)) == documented()
