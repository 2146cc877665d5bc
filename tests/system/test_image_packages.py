"""Real packages from the index, in a real image."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pytest

from sandbox import Completed, Sandbox
from sandbox.image_builds import build_image

pytestmark = pytest.mark.anyio

PACKAGES = ("python-dateutil", "pyyaml", "beautifulsoup4", "jinja2", "more-itertools", "tabulate")
SCRIPT = """
import jinja2, more_itertools, tabulate, yaml
from bs4 import BeautifulSoup
from dateutil import parser, tz
from dateutil.relativedelta import relativedelta
return [
    yaml.safe_load("a: [1, {b: c}]"),
    tabulate.tabulate([[1, 2]], headers=["a", "b"], tablefmt="github").splitlines()[0],
    jinja2.Template("{% for x in xs %}{{ x }},{% endfor %}").render(xs=[1, 2]),
    list(more_itertools.chunked(range(3), 2)),
    BeautifulSoup("<p>Hi <b>you</b></p>", "html.parser").b.text,
    str(parser.isoparse("2024-01-31") + relativedelta(months=1)),
    parser.parse("3 Jan 2024 10:00").replace(tzinfo=tz.gettz("Europe/Berlin")).isoformat(),
]
"""


async def test_popular_packages_work_in_scripts(tmp_path):
    with anyio.fail_after(600):
        image = await anyio.to_thread.run_sync(lambda: build_image("real", PACKAGES, folder=tmp_path / "images"))
        async with Sandbox(component=image.component, cache=tmp_path / "cache", isolation="thread") as sandbox:
            result = await sandbox.run(SCRIPT)
    assert result.outcome == Completed(
        [
            {"a": [1, {"b": "c"}]},
            "|   a |   b |",
            "1,2,",
            [[0, 1], [2]],
            "you",
            "2024-02-29 00:00:00",
            "2024-01-03T10:00:00+01:00",
        ]
    )
