"""`codemode show`: the picture of a run in the terminal, and as a page in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import threading
import zlib
from collections import Counter
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from broker.recordings.showing.picture import Picture, Span, spelled_seconds

EXAMPLE = Path(__file__).parents[3] / "examples" / "history" / "recording.jsonl"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
DARK, LIGHT = "0", "1"  # blink::mojom::PreferredColorScheme
ALLOWED = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "code", "strong"}
ALLOWED |= {"details", "summary", "span", "div", "pre"}
BACK = {DARK: (0x14, 0x17, 0x1A), LIGHT: (0xFF, 0xFF, 0xFF)}
BAR = {DARK: (0x48, 0xB1, 0x7C), LIGHT: (0x1F, 0x7A, 0x4D)}


def test_the_terminal_shows_calls_over_time_and_the_script_with_its_costs(codemode):
    shown = codemode("show", str(EXAMPLE)).stdout
    assert re.search(r"25 calls, \d+ steps", shown)
    bars = [line for line in shown.splitlines() if "git.git_show  " in line and "█" in line]
    assert len(bars) == 4
    assert len({line.index("█") for line in bars}) == 1, "calls of a gather begin at the same time"
    later = next(line for line in shown.splitlines() if "filesystem.write_file" in line and "█" in line)
    assert later.index("█") > bars[0].index("█")
    (cost,) = [line for line in shown.splitlines() if "await git.git_show(repo_path=REPOSITORY" in line]
    assert cost.split()[:2] + cost.split()[3:4] == ["4", "calls,", "ms"]
    assert "history: 4 commits, 2 authors" in shown


def test_json_has_the_spans(codemode):
    shown = json.loads(codemode("show", str(EXAMPLE), "--json").stdout)
    assert [span["number"] for span in shown["spans"]] == list(range(1, 26))
    assert all(0 <= span["begin"] <= span["sent"] <= span["end"] <= shown["seconds"] for span in shown["spans"])


def test_the_cost_of_a_line_counts_the_time_of_calls_at_once_one_time():
    times = [(0, 4, 5), (1, 4, 2), (2, 4, 6), (8, 4, 9), (3, 7, 4)]
    spans = tuple(
        Span(number, line, "a.b", begin, begin, end, None, "ok") for number, (begin, line, end) in enumerate(times)
    )
    assert Picture(9, spans, (), "completed", is_good=True).by_line() == {4: (4, 7), 7: (1, 1)}


def test_a_page_is_as_private_as_an_exported_recording(codemode, tmp_path):
    assert codemode("show", str(EXAMPLE), "--html", "run.html").returncode == 0
    assert (tmp_path / "run.html").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("command", [["show", str(EXAMPLE), "--html"], ["recordings", "export", "last", "--output"]])
def test_the_name_of_a_written_file_is_shown_without_what_a_terminal_acts_on(codemode, tmp_path, command):
    codemode("recordings", "import", str(EXAMPLE))
    finished = codemode(*command, "q\x1b[31m\u202e.file")
    assert (tmp_path / "q\x1b[31m\u202e.file").is_file()
    assert finished.stderr.startswith("q.file: ")


def test_a_call_that_waits_for_a_person_is_marked(codemode, config, tmp_path):
    (tmp_path / "script.py").write_text("from tools import odd\nawait odd.echo(text='x')\n")
    codemode("run", "script.py", "-c", config, "--park")
    shown = codemode("show", "last").stdout
    assert "is parked and waits for somebody to allow 1 call" in shown
    assert "?" in next(line for line in shown.splitlines() if "odd.echo  " in line)


def test_a_long_script_is_shown_around_its_calls(codemode, config, tmp_path):
    called = "from tools import odd\nawait odd.echo(text='x')\n"
    (tmp_path / "script.py").write_text("# above\n" * 5_998 + called + "# below\n" * 40)
    assert codemode("run", "script.py", "-c", config, "--allow", "odd.*").returncode == 0
    _, _, script = codemode("show", "last").stdout.partition("\n\n")[2].partition("\n\n")
    lines = [line.split() for line in script.splitlines()]
    assert lines[0] == ["⋮", "5996", "lines"]
    assert [line[0] for line in lines[1:4]] == ["5997", "5998", "5999"]
    assert lines[4][:2] + lines[4][4:6] == ["1", "call,", "6000", "await"]
    assert lines[-2] == ["⋮", "37", "lines"]
    assert codemode("show", "last", "--html", "run.html").returncode == 0
    page = (tmp_path / "run.html").read_text()
    assert '<div class="at">⋮</div><div>5996 lines</div>' in page
    assert page.count("# above") == 2


def test_a_page_runs_nothing_and_loads_nothing_whatever_the_texts_are(codemode, config, tmp_path):
    text = "</pre><script>alert(1)</script><img src=//x onerror=y>"
    (tmp_path / "<b>.py").write_text(f"from tools import odd\nprint(await odd.echo(text={text!r}))\n")
    codemode("run", "<b>.py", "-c", config, "--allow", "odd.*")
    assert codemode("show", "last", "--html", "run.html").returncode == 0
    page = (tmp_path / "run.html").read_text()
    assert "default-src 'none'" in page
    assert "alert(1)" in page
    tags = Tags()
    tags.feed(page)
    assert tags.seen <= ALLOWED
    assert tags.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "style"}


class Tags(HTMLParser):
    """What a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("theme", [DARK, LIGHT])
def test_the_page_is_readable_on_a_phone_and_a_desk_in_both_themes(codemode, tmp_path, browser, width, theme):
    codemode("show", str(EXAMPLE), "--html", "run.html")
    pixels = screenshot(browser, tmp_path / "run.html", width, theme)
    colours = Counter(pixel for row in pixels for pixel in row)
    assert colours.most_common(1)[0][0] == BACK[theme]
    bars = [number for number, row in enumerate(pixels) if row.count(BAR[theme]) >= 3]
    assert len(bars) > 100, "the bars of many calls"
    # Nothing is wider than the screen: the right margin is empty all the way down.
    assert all(row[-8:] == [BACK[theme]] * 8 for row in pixels)


@pytest.fixture
def browser():
    """The browser of this machine."""
    found = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium: install chromium or chromium-headless-shell")
    return found


@pytest.fixture
def address():
    """A server that tells what it is asked for: its address, and the paths."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Be silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


HOSTILE = """
</pre></details></script><script>document.title = "taken"; fetch("HERE/script")</script><img src="HERE/image"
onerror="document.title = 'taken'"><svg onload="document.title = 'taken'"></svg><iframe src="HERE/frame"></iframe>
<link rel=stylesheet href="HERE/link"><style>@import url(HERE/style); body {background: url(HERE/back)}</style>
<meta http-equiv=refresh content="0;url=HERE/refresh"><a href="javascript:document.title='taken'">x</a>
<base href="HERE/">
\u202e\u2066\0\x1b[31m\u2028\U000e0041 --><!-- " ' ` &lt;script&gt;
"""


def test_a_browser_asks_for_nothing_and_runs_nothing_of_a_hostile_page(codemode, config, tmp_path, browser, address):
    here, asked = address
    hostile = HOSTILE.replace("HERE", here)
    (tmp_path / "<img src=x onerror=alert(1)>.py").write_text(
        f"from tools import odd, ToolError\nhostile = {hostile!r}\nprint(hostile * 1_000)\n"
        "print(await odd.echo(text=hostile), len(await odd.echo(text='x' * 900_000)))\n"
        "try:\n    await odd.fail(text=hostile)\nexcept ToolError:\n    raise ValueError(hostile) from None\n"
    )
    assert codemode("run", "<img src=x onerror=alert(1)>.py", "-c", config, "--allow", "odd.*").returncode == 1
    assert codemode("show", "last", "--html", "run.html").returncode == 0
    page = tmp_path / "run.html"
    # All that can be opened is open.
    page.write_text(page.read_text().replace("<details ", "<details open "))
    shown = dom(browser, page)
    assert "<title>&lt;img src=x onerror=alert(1)&gt;.py run_" in shown
    assert "<title>taken" not in shown
    assert asked == []
    bare = tmp_path / "bare.html"
    bare.write_text(f"<!doctype html><title>bare</title>{hostile.replace(f'{here}/refresh', '#')}")
    assert "<title>taken" in dom(browser, bare)
    assert "/image" in asked


def dom(browser: str, page: Path) -> str:
    """What a browser has made of a page after some time."""
    return browse(browser, page, "--virtual-time-budget=2000", "--dump-dom").decode()


def test_lines_of_a_script_are_numbered_as_python_numbers_them(codemode, tmp_path):
    (tmp_path / "script.py").write_text("# a\x0cb\u2028c\x85d\nraise ValueError\n")
    codemode("run", "script.py")
    shown = codemode("show", "last").stdout
    assert re.search(r"^ +2 +raise ValueError$", shown, re.MULTILINE)
    codemode("show", "last", "--html", "run.html")
    assert '<div class="at">2</div><div>raise ValueError</div>' in (tmp_path / "run.html").read_text()


def test_spaces_inside_a_line_and_a_value_are_shown_as_they_are(codemode, tmp_path):
    (tmp_path / "script.py").write_text('x = "a  b"\t# two  spaces\nif x:\n\tprint(x)\nx\n')
    codemode("run", "script.py")
    shown = codemode("show", "last").stdout
    assert 'completed with "a  b"\n' in shown
    assert '1  x = "a  b"  # two  spaces\n' in shown
    assert "3      print(x)\n" in shown
    codemode("show", "last", "--html", "run.html")
    page = (tmp_path / "run.html").read_text()
    assert "<strong>completed with &quot;a  b&quot;</strong>" in page
    assert "<div>x = &quot;a  b&quot;  # two  spaces</div>" in page


def screenshot(browser: str, page: Path, width: int, theme: str) -> list[list[tuple[int, ...]]]:
    target = page.with_suffix(".png")
    size, scheme = f"--window-size={width},1500", f"--blink-settings=preferredColorScheme={theme}"
    browse(browser, page, size, scheme, f"--screenshot={target}")
    return decoded(target.read_bytes())


def browse(browser: str, page: Path, *switches: str) -> bytes:
    always = ("--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", f"--user-data-dir={page.parent}")
    return subprocess.run(  # noqa: S603  # the browser of this machine
        [browser, "--headless", *always, *switches, page.as_uri()], check=True, capture_output=True, timeout=120
    ).stdout


def decoded(png: bytes) -> list[list[tuple[int, ...]]]:
    """The pixels of an 8-bit RGB or RGBA image, without a library for it."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8
    count = {2: 3, 6: 4}[kind]
    data, position = b"", 8
    while position < len(png):
        (size,) = struct.unpack(">I", png[position : position + 4])
        if png[position + 4 : position + 8] == b"IDAT":
            data += png[position + 8 : position + 8 + size]
        position += size + 12
    raw, stride = zlib.decompress(data), width * count
    rows: list[list[tuple[int, ...]]] = []
    before = bytearray(stride)
    for number in range(height):
        begin = number * (stride + 1)
        line = bytearray(raw[begin + 1 : begin + 1 + stride])
        unfilter(raw[begin], line, before, count)
        rows.append([tuple(line[at : at + 3]) for at in range(0, stride, count)])
        before = line
    return rows


def unfilter(kind: int, line: bytearray, above: bytearray, count: int) -> None:
    if kind == 0:
        return
    for at in range(len(line)):
        left = line[at - count] if at >= count else 0
        corner = above[at - count] if at >= count else 0
        line[at] = (line[at] + predicted(kind, left, above[at], corner)) & 255


def predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 1:
        return left
    if kind == 2:
        return up
    if kind == 3:
        return (left + up) // 2
    nearest = min((abs(up - corner), 0), (abs(left - corner), 1), (abs(left + up - 2 * corner), 2))
    return (left, up, corner)[nearest[1]]


def test_long_times_are_told_in_longer_units():
    told = [spelled_seconds(seconds) for seconds in (0.034, 1, 119, 120, 7_199, 7_200, 172_799, 172_800, 864_000)]
    assert told == ["34 ms", "1.0 s", "119.0 s", "2.0 min", "120.0 min", "2.0 h", "48.0 h", "2.0 days", "10.0 days"]
