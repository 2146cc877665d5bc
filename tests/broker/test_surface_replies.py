"""What a model is replied for a run, and the output that is kept beside."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.server import MCPServer

import sandbox
from broker import Broker
from broker.calls.attempts import CallRecord
from broker.cli import run_report
from broker.runs.envelope import ExecutionResult, StoppedBy
from broker.surface import KeptOutputs
from broker.surface.outputs import output_uri
from broker.surface.replies import Draft, Reply
from broker.surface.token_room import TokenRoom
from broker.texts import run_texts
from broker.tiers import TokenCounter, token_counter
from broker.tiers.tokens import ESTIMATE

ABOUT = "what customers of a region bought between two days, without what they sent back, the largest first. " * 4
LIMITS = sorted(
    {
        name
        for source in Path(sandbox.__file__).parent.glob("*.py")
        for name in re.findall(r'Stopped\("(\w+)", ', source.read_text())
    }
)
"""What stops a script, by the names in the sandbox's own sources."""
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}


def reply_of(
    outputs: KeptOutputs | None = None, *, output_tokens: int = 100, counter: TokenCounter | None = None, **fields: Any
) -> Reply:
    plain = {"outcome": "completed", "run_id": "run_1", "duration_ms": 1.0, "calls": [], "usage": {}}
    draft = Draft.of(ExecutionResult.model_validate(plain | fields), None)
    if draft.is_short(output_tokens):
        return draft.whole()
    reply, kept = draft.cut(output_tokens, counter)
    if kept is not None and outputs is not None:
        outputs.keep(draft.result.run_id, kept, "", output_tokens)
    return reply


def text_of(outputs: KeptOutputs | None = None, **fields: Any) -> str:
    return reply_of(outputs, **fields).text


def test_a_script_that_only_displays_has_a_text_all_the_same():
    # Some model APIs refuse an empty text block.
    assert text_of(displayed=[IMAGE]) == "The script displayed 1 block, below."
    assert text_of(displayed=[IMAGE, IMAGE]) == "The script displayed 2 blocks, below."
    assert text_of(displayed=[IMAGE], stdout="see:\n") == "see:"


def test_a_script_that_prints_blanks_has_shown_nothing():
    assert text_of(stdout="\n \n") == run_texts.NOTHING_TO_SHOW


def test_a_script_that_was_stopped_is_told_where():
    stopped = StoppedBy(limit="wall_seconds", amount=30, line=7)
    assert text_of(outcome="stopped", stopped=stopped).startswith("The script was stopped at line 7: limit")


@pytest.mark.parametrize("limit", LIMITS)
def test_whatever_stops_a_script_there_is_something_to_do_about_it(limit):
    said = text_of(outcome="stopped", stopped={"limit": limit, "amount": 1})
    assert re.search(r"limit \w+=1\. .+\.$", said, re.MULTILINE)
    assert run_report._ADVICE[limit]


def test_a_script_that_made_the_same_call_over_and_over_is_told_so():
    calls, wall = StoppedBy(limit="calls", amount=1_000), StoppedBy(limit="wall_seconds", amount=30)
    said = "Its last 20 calls were the same: a loop over pages passes each call the cursor of the page before."
    assert said in text_of(outcome="stopped", stopped=calls, alike_calls=20)
    assert "Ask for more in each call" in text_of(outcome="stopped", stopped=calls, alike_calls=19)
    assert f"Pass a larger timeout (600 at most), or do less in one script. {said}" in text_of(
        outcome="stopped", stopped=wall, alike_calls=20
    )
    memory = StoppedBy(limit="memory_bytes", amount=1)
    assert "the same" not in text_of(outcome="stopped", stopped=memory, alike_calls=20)


def test_a_failure_tells_calls_that_were_sent_from_calls_that_were_not():
    error = {"type": "ToolError", "message": "", "traceback": "ToolError"}
    refused = CallRecord(server="shop", tool="refund", status="refused")
    found = CallRecord(server="shop", tool="find", status="ok")
    assert text_of(outcome="raised", error=error, calls=[refused]).endswith("None of these calls was executed.")
    assert "Calls that were sent stay done" in text_of(outcome="raised", error=error, calls=[found, refused])


def test_what_a_script_printed_before_it_failed_is_told_from_the_failure():
    error = {"type": "SystemExit", "message": "bad thing", "traceback": "SystemExit: bad thing"}
    assert text_of(outcome="raised", error=error, stdout="partial\n").startswith(
        "SystemExit: bad thing\nstdout:\npartial\n"
    )
    assert text_of(stdout="whole\n") == "whole"


def test_output_that_is_cut_in_two_places_counts_once_among_what_is_kept():
    outputs = KeptOutputs(most_characters=100_000)
    for number in range(50):
        text_of(outputs, run_id=f"run_{number}", stdout="x" * 20_000)
        outputs.keep(f"run_{number}", "x" * 20_000, "")
    kept = [number for number in range(50) if outputs.read(output_uri(f"run_{number}", 0), "") is not None]
    assert kept == [45, 46, 47, 48, 49]


def test_a_page_behind_the_end_says_where_that_is():
    outputs = KeptOutputs()
    outputs.keep("run_1", "x" * 20, "")
    said = "[the output ends after 20 characters; it begins at resource:///runs/run_1/output?offset=0]"
    assert [outputs.read(output_uri("run_1", at), "") for at in (19, 20, 9_999_999)] == ["x", said, said]


def readable(outputs: KeptOutputs, owner: str, most: int = 400) -> list[int]:
    """The runs of an owner, which are named after it and numbered."""
    return [n for n in range(most) if outputs.read(output_uri(f"run_{owner}{n}", 0), owner) is not None]


@pytest.mark.parametrize(
    ("most_characters", "most_runs", "modest", "greedy"),
    [
        (100_000, 1_000, (5, 1_000), (400, 9_000)),
        (100_000, 1_000, (50, 100), (90, 30_000)),
        (10**6, 20, (4, 9_000), (99, 1)),
    ],
    ids=["many that are long", "few that are longer than many", "many that are short"],
)
def test_who_takes_all_room_for_output_displaces_its_own(most_characters, most_runs, modest, greedy):
    outputs = KeptOutputs(most_characters=most_characters, most_runs=most_runs)
    for owner, (count, size) in (("b", modest), ("a", greedy), ("b", (modest[0] + 1, modest[1]))):
        for number in range(count):
            outputs.keep(f"run_{owner}{number}", "x" * size, owner)
    assert readable(outputs, "b") == list(range(modest[0] + 1))
    kept = readable(outputs, "a")
    assert kept
    assert kept == list(range(greedy[0] - len(kept), greedy[0]))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 40)), max_size=60))
def test_kept_output_stays_within_its_room(made):
    outputs = KeptOutputs(most_characters=100, most_runs=10)
    for number, (owner, size) in enumerate(made):
        outputs.keep(f"run_{owner}{number}", "x" * size, owner)
        found = [kept for name in "abc" for kept in readable(outputs, name, len(made))]
        assert number in found
        assert len(found) <= 10
        assert sum(made[kept][1] for kept in found) <= 100


COUNTERS = {"tokenizer": token_counter(), "estimate": ESTIMATE}
ROWS = [{"id": place, "price": place * 7.25, "name": f"item {place}"} for place in range(9_000)]
PRINTED = {
    "JSON": json.dumps(ROWS),
    "Japanese": "日本語の文章はこう書く。" * 40_000,
    "prose": (Draft.cut.__doc__ or "") * 2_000,
    "code": "def one(two):\n\treturn {'three': two}\n\n" * 9_000,
    "escapes": '"\\\x00\x1b' * 90_000,
    "a letter": "x" * 400_000,
    "emoji": "😀🎉🚀🔥" * 40_000,
}


def pages_of(outputs: KeptOutputs, uri: str) -> list[str]:
    """The pages of a kept output, followed to the end, each without the line that names the next."""
    pages = []
    while uri:
        text, _, following = (outputs.read(uri, "") or "").partition("\n[more at ")
        pages.append(text)
        uri = following.rstrip("]")
    return pages


@pytest.mark.parametrize("counted_by", COUNTERS)
@pytest.mark.parametrize("kind", PRINTED)
def test_a_reply_and_a_page_have_as_many_tokens_as_promised(kind, counted_by):
    counter = COUNTERS[counted_by]
    outputs = KeptOutputs(counter=counter)
    reply = reply_of(outputs, output_tokens=6_000, counter=counter, stdout=PRINTED[kind])
    assert reply.structured is not None
    uri = reply.structured["truncated"]["resource"]
    for text in (reply.text, json.dumps(reply.structured, ensure_ascii=False), outputs.read(uri, "")):
        assert text is not None
        assert counter.count(text) <= 6_000
        assert counter.count(text) >= 5_000 or len(text) > 40_000
    assert "".join(pages_of(outputs, uri)) == PRINTED[kind]


@pytest.mark.parametrize("counted_by", COUNTERS)
def test_error_value_and_both_outputs_share_one_budget(counted_by):
    counter = COUNTERS[counted_by]
    calls = [CallRecord(server="desk", tool="add", status="ok", duration_ms=1.25)] * 900
    error = {"type": "T" * 4_000, "message": "m é\n" * 1_000, "traceback": "\nTraceback\n" + '"of" ' * 1_600}
    fields: dict[str, Any] = {"stdout": "out 1,\n" * 40_000, "stderr": "err\t" * 40_000, "calls": calls}
    outputs = KeptOutputs(counter=counter)
    told: dict[str, Any] = {}
    for more in ({"value": ROWS}, {"value": ROWS[:90]}, {"outcome": "raised", "error": error}):
        reply = reply_of(outputs, output_tokens=6_000, counter=counter, **fields, **more)
        assert reply.structured is not None
        envelope = json.dumps(reply.structured, ensure_ascii=False)
        assert 4_000 <= counter.count(envelope) <= 6_000
        assert 5_000 <= counter.count(reply.text) <= 6_000
        assert reply.structured["value"] == (more["value"] if more.get("value") == ROWS[:90] else None)
        assert (reply.structured["stdout"][:9], reply.structured["stderr"][:4]) == ("out 1,\nou", "err\t")
        told = reply.structured["truncated"]
        whole = "".join(pages_of(outputs, told["resource"]))
        assert len(whole) == told["characters"]
        for name in set(told["fields"]) - {"calls"}:
            begins = whole[told["offsets"][name] :]
            first = (
                json.dumps(ROWS) if name == "value" else {**fields, **{f"error.{k}": v for k, v in error.items()}}[name]
            )
            assert begins.startswith(first[:5_000].rstrip()), name
    assert set(told["fields"]) == {"error.message", "error.traceback", "stdout", "stderr", "calls"}


@pytest.mark.parametrize("counted_by", COUNTERS)
def test_what_is_cut_goes_on_where_its_notice_says(counted_by):
    printed = "".join(f"{place} " for place in range(60_000))
    outputs = KeptOutputs(counter=COUNTERS[counted_by])
    error = {"type": "ValueError", "message": printed[:4_000], "traceback": f"Traceback\n{printed[:7_000]}"}
    reply = reply_of(
        outputs, output_tokens=2_000, counter=COUNTERS[counted_by], outcome="raised", error=error, stdout=printed
    )
    assert reply.structured is not None
    cut = [reply.text, reply.structured["stdout"], *list(reply.structured["error"].values())[1:]]
    for text in cut:
        shown, _, notice = text.partition("\n[")
        count, _, rest = notice.partition(" characters left out here: print less, or read them at ")
        uri = rest.partition("]")[0]
        following = "".join(pages_of(outputs, uri))
        last, first = shown.rpartition(" ")[2], following.partition(" ")[0]
        before = shown.split(" ")[-2]
        assert int(last + first) == int(before) + 1
        assert rest.partition("]\n")[2][:200] == following[int(count) :][:200]


def test_a_reply_that_fits_is_not_cut_and_not_counted():
    def count(text: str) -> int:
        raise AssertionError(text)

    reply = reply_of(output_tokens=6_000, counter=TokenCounter("none", count), stdout="é" * 2_000, value=[1] * 200)
    assert reply.structured is not None
    assert (reply.structured["truncated"], reply.structured["stdout"]) == (None, "é" * 2_000)


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=9), st.integers(1, 900)), min_size=1, max_size=6),
    st.integers(100, 700),
    st.sampled_from(list(COUNTERS)),
    st.data(),
)
@settings(deadline=None)
def test_pages_lose_and_repeat_no_character(made, tokens, counted_by, data):
    text = "".join(piece * times for piece, times in made)
    counter = COUNTERS[counted_by]
    outputs = KeptOutputs(counter=counter)
    outputs.keep("run_1", text, "", tokens)
    begin = data.draw(st.integers(0, len(text) - 1))
    end = begin
    uri = output_uri("run_1", begin)
    while uri:
        page = outputs.read(uri, "") or ""
        assert counter.count(page) <= tokens
        last_line = page.rpartition("\n[more at ")[2].rstrip("]") if page.endswith("]") else ""
        following = last_line if last_line.startswith("resource:///runs/run_1/") else ""
        shown = page.rpartition("\n[more at ")[0] if following else page
        assert text[end : end + len(shown)] == shown
        end += len(shown)
        assert not following or (shown and following == output_uri("run_1", end))
        uri = following
    assert end == len(text)


def test_pages_count_about_as_much_as_they_hold():
    counted = 0

    def count(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return ESTIMATE.count(text)

    text = json.dumps(ROWS)
    outputs = KeptOutputs(counter=TokenCounter("estimate", count))
    outputs.keep("run_1", text, "")
    assert len(pages_of(outputs, output_uri("run_1", 0))) > 20
    assert counted < 4 * len(text)


@given(st.text(max_size=300), st.integers(0, 200), st.sampled_from(list(COUNTERS)))
def test_no_part_of_a_text_exceeds_its_room(text, tokens, counted_by):
    room = TokenRoom(COUNTERS[counted_by])
    assert room.tokens(text[: room.end(text, tokens)]) <= tokens
    assert room.tokens(text[room.begin(text, tokens) :]) <= tokens


@pytest.mark.anyio
async def test_a_script_that_says_much_in_every_way_is_replied_within_the_budget():
    code = (
        "import sys\nprint('[1, 2]\\n' * 90_000)\nprint('日本語' * 90_000, file=sys.stderr)\n"
        "raise ValueError('{\"a\": 1}, ' * 90_000)"
    )
    async with Broker.from_config({"mcpServers": {}}) as broker:
        session = broker.session()
        reply = await session.dispatch("execute_code", {"code": code})
        valued = await session.dispatch("execute_code", {"code": "print('a, b\\n' * 9_000)\n[[1, 2, 3]] * 9_000"})
        whole = await session.execute_code(code)
    for said in (reply, valued):
        assert token_counter().count(json.dumps(said.structured, ensure_ascii=False)) <= 6_000
        assert token_counter().count(said.text) <= 6_000
        assert said.text.count("[more at") == 0
        assert "characters left out here: print less, or read them at resource:///runs/" in said.text
    assert valued.structured is not None
    assert valued.structured["truncated"]["fields"] == ["value", "stdout"]
    assert len(whole.stdout) > 600_000


@pytest.mark.anyio
async def test_stubs_of_a_script_that_names_many_tools_fit_on_a_page_and_the_others_are_named():
    server = MCPServer("shop")

    def find(*, customer_number: int, earliest_day: str, latest_day: str, page_number: int = 1) -> list[str]:
        """Finds orders."""
        raise AssertionError((customer_number, earliest_day, latest_day, page_number))

    for number in range(140):
        server.add_tool(find, name=f"find_orders_{number}", description=f"Finds orders {number}: {ABOUT}")
    script = "from tools import shop\nif False:\n" + "".join(
        f"    await shop.find_orders_{n}(customer_number={n}, earliest_day='1', latest_day='2')\n" for n in range(140)
    )
    async with Broker(servers={"shop": server}) as broker:
        session = broker.session()
        replies: list[Reply] = []
        while not replies or replies[-1].is_error:
            replies.append(await session.dispatch("execute_code", {"code": f"{script}'done'"}))
            assert len(replies) < 6
        other = broker.session()
        first = await other.dispatch("execute_code", {"code": script})
        named = re.search(r"get_tool_details\((.+?\]\})\)", first.text)
        assert named is not None
        fetched = await other.dispatch("get_tool_details", named[1])
    assert [reply.is_error for reply in replies] == [True, True, False]
    told: list[str] = []
    for reply in replies[:-1]:
        assert reply.structured is not None
        stubs = re.findall(r"async def (find_orders_\d+)\(", reply.text)
        assert stubs == re.findall(r"async def (find_orders_\d+)\(", reply.structured["error"]["message"])
        assert token_counter().count(reply.text) <= 12_000
        assert token_counter().count(json.dumps(reply.structured)) <= 14_000
        said = reply.text.partition("No tool was called.")[0]
        assert len(said) < 800
        told += stubs
        if len(told) < 140:
            assert f"Those whose stubs stand below are described now. Fetch the other {140 - len(told)} with" in said
            assert ", the rest the same way; check that the script fits all stubs, and run it again." in said
        else:
            assert said.endswith(
                "They are described now: check that the script fits the stubs below, and run it again.\n"
            )
    assert sorted(told) == sorted(f"find_orders_{n}" for n in range(140))
    assert not fetched.is_error
    assert not set(re.findall(r"async def (\w+)\(", fetched.text)) & set(re.findall(r"async def (\w+)\(", first.text))
