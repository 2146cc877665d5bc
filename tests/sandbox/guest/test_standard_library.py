"""Which modules of the standard library a script can import: docs/limitations.md lists them, and this run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox import Completed

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[3] / "docs" / "limitations.md"
IMPORT_ALL = """
import sys
found, missing = [], []
for name in sorted(sys.stdlib_module_names):
    if not name.startswith("_"):
        try:
            __import__(name)
            found.append(name)
        except ModuleNotFoundError as error:
            missing.append(name if error.name == name else f"{name}: {error}")
[found, missing]
"""


def listed(heading: str) -> list[str]:
    section = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return sorted(re.findall(r"`(\w+)`", section.partition("\n\n")[2].partition("\n\n")[0]))


async def test_the_page_lists_exactly_what_can_be_imported(run):
    outcome = (await run(IMPORT_ALL)).outcome
    assert outcome == Completed([listed("What can be imported"), listed("What is missing")])


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("import json\njson.loads(json.dumps({'a': [1.5, None]}))", {"a": [1.5, None]}),
        (
            "import zoneinfo as z, datetime as d\nd.datetime(2026, 7, 1, tzinfo=z.ZoneInfo('Asia/Tokyo')).utcoffset()",
            "9:00:00",
        ),
        ("import zoneinfo\nlen(zoneinfo.available_timezones()) > 500", True),
        ("import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('select 6 * 7').fetchone()", [42]),
        ("import re, statistics\n[re.findall(r'\\d+', 'a1b22'), statistics.mean([1, 2, 3])]", [["1", "22"], 2]),
        ("import hashlib\nhashlib.sha256(b'').hexdigest()[:8]", "e3b0c442"),
        ("import zlib, gzip\ngzip.decompress(gzip.compress(b'a' * 99)) == b'a' * 99", True),
        ("import csv, io\nlist(csv.DictReader(io.StringIO('a,b\\n1,2')))", [{"a": "1", "b": "2"}]),
        ("import xml.etree.ElementTree as E\nE.fromstring('<a><b>x</b></a>').findtext('b')", "x"),
        ("from html.parser import HTMLParser\nimport html\nhtml.unescape('&lt;')", "<"),
        ("import urllib.parse\nurllib.parse.parse_qs('a=1&a=2')", {"a": ["1", "2"]}),
        ("import tomllib\ntomllib.loads('a = 1')", {"a": 1}),
        ("import difflib\n''.join(difflib.unified_diff(['a\\n'], ['b\\n'], n=0)).count('\\n')", 5),
        ("import decimal\ndecimal.getcontext().prec = 5\nstr(decimal.Decimal(1) / 3)", "0.33333"),
        ("import unittest.mock\nunittest.mock.Mock(return_value=3)()", 3),
        ("import email.message\nm = email.message.EmailMessage()\nm['To'] = 'a@b'\nm.as_string().strip()", "To: a@b"),
    ],
)
async def test_what_scripts_use_most_works(run, script, value):
    assert (await run(script)).outcome == Completed(value)


async def test_importing_costs_no_files(run):
    result = await run("import sys\n[name for name in ('json', 'asyncio', 'email', 'xml') if name not in sys.modules]")
    assert result.outcome == Completed([])
