"""How much of the image an instance makes its own: each page takes memory for as long as the script waits, and time."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from sandbox.host_messages import encode_start
from sandbox.instance import Instance
from sandbox.terms import BEFORE_ANY_RUN

PAGE = 4096
PRESENT, OF_FILE = 1 << 63, 1 << 61  # proc_pid_pagemap(5)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which pages a process has copied")


@pytest.fixture
def made(image):
    instance = Instance(image)
    yield instance
    instance.close()


def copied() -> int:
    """Return how many pages of compiled images this process has copies of."""
    pages = 0
    with Path("/proc/self/pagemap").open("rb", 0) as pagemap:
        for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
            if line.endswith(".cwasm") and " rw-p " in line:
                begin, end = (int(address, 16) // PAGE for address in line.split()[0].split("-"))
                pagemap.seek(begin * 8)
                entries = struct.unpack(f"{end - begin}Q", pagemap.read((end - begin) * 8))
                pages += sum(1 for entry in entries if entry & PRESENT and not entry & OF_FILE)
    return pages


def test_a_new_instance_copies_few_pages_of_the_image(image):
    before = copied()
    instance = Instance(image)
    assert 10 < copied() - before < 65
    instance.close()


def test_a_small_script_finds_most_of_its_pages_copied(made):
    before = copied()
    entry = made.enter("start", encode_start("for i in range(3):\n    print(i)\n", "s.py", {}, BEFORE_ANY_RUN), 60)
    while not entry.advance():
        pass
    assert '"completed"' in entry.answer
    assert 0 <= copied() - before < 25
