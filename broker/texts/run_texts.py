"""The texts about runs that a model reads: how one ended, what it called, why it could not begin or go on.

Above: dispatch.py, replies.py, outputs.py. Below: nothing. Written as tool_texts.py says.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import TYPE_CHECKING

from codegen.plain_text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.calls.attempts import CallRecord
    from broker.runs.envelope import StoppedBy

_NEVER_EXECUTED = frozenset({"refused", "bad_arguments", "not_described", "not_found", "unavailable", "waiting"})
_GROUPS = 8
_ENDLESS = frozenset({"calls", "wall_seconds"})
_LOOPING = 20
"""From as many equal calls on, one after the other, a loop seems to be at fault."""
_NAME_CHARACTERS = 60
_GIVEN_CHARACTERS = 40

LONGEST_SECONDS = 600.0
"""The longest timeout of a script; who asks for more gets that."""

_PLAIN_NAME = re.compile(r"[\w./:@…-]+")

_ADVICE = {
    "wall_seconds": f"Pass a larger timeout ({LONGEST_SECONDS:g} at most), or do less in one script.",
    "cpu_seconds": "Leave heavy work to a tool, or do less in one script.",
    "memory_bytes": "Keep less data at a time.",
    "output_bytes": "Print a summary.",
    "value_bytes": "End with a summary.",
    "argument_bytes": "Pass less to one call.",
    "open_bytes": "Make fewer calls at the same time, or pass less to each.",
    "recording_bytes": "Ask for less in each call, or split the script.",
    "calls": "Ask for more in each call, or split the script.",
    "stack": "Nest and recurse less.",
    "depth": "What it ended with or passed to a call is nested too deep: json.dumps(value) makes text of it.",
    "values": "What it ended with or passed to a call has too many parts: end with a summary, and pass less.",
    "steps": "It waits too often: sleep longer each time, or split the script.",
    "worker": "It brought down the process that it ran in: keep less data at a time.",
}

NOTHING_TO_SHOW = (
    "The script completed. It printed nothing and has no value: print what you want to see, or end with an expression."
)
REFUSED = "The refused call was not sent. Do without it, or ask the user to allow it; a workaround may be refused too."
NOT_RECORDED = (
    "The script was not started: the broker cannot record what it does, and does nothing unrecorded. Nothing was "
    "executed. Its operator has to repair the store (`codemode doctor` says how); then run the script again."
)
NO_SANDBOX = (
    "The script was not started: the broker cannot run scripts now. Nothing was executed. Its operator has to fix "
    "that (see its log and `codemode doctor`); then run the script again."
)

NOTHING_WAITS = "This request state is of no run that waits. Call the tool again without it."
UNFORESEEN = (
    "codemode-broker failed in a way that was not foreseen; its log says where. Calls may have been made: check before "
    "you repeat them, and tell the user if it happens again."
)


def calls_line(calls: Sequence[CallRecord]) -> str:
    """Return the calls of a run on one line, a group for each tool and status, in the order of their first call."""
    if not calls:
        return ""
    order = {key: number for number, key in reversed(list(enumerate(map(_kind, calls))))}
    groups = [
        f"{name} {status}{f' x{count}' if (count := len(list(same))) > 1 else ''}"
        for (name, status), same in groupby(sorted(calls, key=lambda call: order[_kind(call)]), key=_kind)
    ]
    more = f"; and {counted(len(groups) - _GROUPS, 'more kind')}" if len(groups) > _GROUPS else ""
    return f"calls: {'; '.join(groups[:_GROUPS])}{more}"


def already_made(calls: Sequence[CallRecord]) -> str:
    """Return what a failed run had done, for whoever mends the script."""
    if not calls:
        return "No tool was called."
    if all(call.status in _NEVER_EXECUTED for call in calls):
        return f"{calls_line(calls)}\nNone of these calls was executed."
    rule = "Calls that were sent stay done: in the corrected script, repeat only read-only calls."
    return f"{calls_line(calls)}\n{rule}"


def stopped(by: StoppedBy, alike: int = 0) -> str:
    """Return what ended a script that was stopped; `alike` of its last calls were the same.

    A loop that never comes to the next page is better mended than given more time.
    """
    if by.limit == "shutdown":
        return f"The script was stopped after {by.amount:g} s: the server is shutting down. Run the rest again later."
    advice = _ADVICE.get(by.limit, "")
    if by.limit == "wall_seconds" and by.amount >= LONGEST_SECONDS:
        advice = "That is the longest time that a script gets: do less in one script."
    if by.limit in _ENDLESS and alike >= _LOOPING:
        same = (
            f"Its last {alike} calls were the same: a loop over pages passes each call the cursor of the page before."
        )
        advice = same if by.limit == "calls" else f"{advice} {same}"
    place = f" at line {by.line}" if by.line is not None else ""
    return f"The script was stopped{place}: limit {by.reached}. {advice}".rstrip()


def shorter_timeout(seconds: float) -> str:
    """Return that a caller asked for more time than a script gets."""
    return (
        f"timeout: a script gets {seconds:g} s at most. Pass timeout={seconds:g} or less, and split what takes longer."
    )


def left_out(characters: int, uri: str) -> str:
    """Return the notice in the place of output that was cut; not every client lets its model read resources."""
    return f"\n[{characters} characters left out here: print less, or read them at {uri}]\n"


def not_displayed(count: int) -> str:
    """Return that a script displayed what is not shown."""
    left = f"{counted(count, 'displayed block')} {'is' if count == 1 else 'are'}"
    return f"[{left} left out: a reply shows at most 20 and 8 MiB, and none whose data or mime type is broken]"


def displayed(count: int) -> str:
    """Return that a script showed something and said nothing."""
    return f"The script displayed {counted(count, 'block')}, below."


def page_end(following: str | None) -> str:
    """Return the last line of a page of kept output."""
    return f"\n[more at {following}]" if following else ""


def past_the_end(characters: int, uri: str) -> str:
    """Return what stands in place of a page that begins behind the end of the output; `uri` is of the first one."""
    return f"[the output ends after {characters} characters; it begins at {uri}]"


def no_offset(given: str, uri: str) -> str:
    """Return what the offset of a page is, as in `uri`."""
    return f"offset is a number of characters, as in {uri}, not {given[:_GIVEN_CHARACTERS]!r}"


def interrupted(run_id: str, executed: str) -> str:
    """Return what is said of a run that could not be written down or carried out to its end."""
    return (
        "The script was interrupted: the broker failed, and could not record or run the rest of it. "
        f"{one_line(executed, 400)} Tell the user that the broker's operator has to fix that (`codemode doctor` says "
        f"how); then `codemode resume {run_id}` continues it. Do not run the script again before that."
    )


def go_on(run_id: str, *, can_resume: bool) -> str:
    """Return how the operator goes on with a run that was interrupted, once what was wrong is put right."""
    if can_resume:
        return f"When that is fixed, `codemode resume {run_id}` continues it; answered calls are not repeated."
    return "It was recorded without its content, so it cannot be resumed: check what it did before you run it again."


def not_resumed(reason: str) -> str:
    """Return that the run of a request which is repeated cannot go on."""
    return (
        f"This script has begun already, and cannot be resumed: {one_line(reason, 400)} Calls that were sent stay "
        "done: check them before you send the same code again."
    )


def left_until_back(server: str) -> str:
    """Return that the run of a request which is repeated waits for a server that its script may call."""
    name = one_line(server, _NAME_CHARACTERS)
    search = json.dumps({"query": "", "server": name}, ensure_ascii=False)
    return (
        f"This script has begun already, and was not continued, because its server {name} is not available. It stays "
        f"as it is: send the same code again once search_tools({search}) finds tools, and it goes on where it was. "
        "Calls that were sent stay done: check them before you send other code that repeats them."
    )


def _kind(call: CallRecord) -> tuple[str, str]:
    name = one_line(f"{call.server}.{call.tool}", _NAME_CHARACTERS)
    # In quotes where it could be taken for a status or for one more call.
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False), call.status
