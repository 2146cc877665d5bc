"""What a script is told of a call that was refused: by what or whom, and why. Nothing here decides anything.

Above: decision.py, quotas.py, questions.py, run_desk.py, waiting.py. Below: nothing. What a decision rests on is in the
same words where people read it, as in the audit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codegen.plain_text import counted, few, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

_SOURCES = 3
_CALL_CHARACTERS = 130
_TITLE_CHARACTERS = 120
_LABEL_CHARACTERS = 60
_FLOW_CHARACTERS = 250
_QUOTA_CHARACTERS = 300
_GRANT_CHARACTERS = 300
_REASON_CHARACTERS = 360
_PATTERN_CHARACTERS = 400
_PLAIN_PATTERN = re.compile(r"[A-Za-z0-9_./*?\[\]:@-]+")

FOR_OTHER_ARGUMENTS = "does not hold for these arguments"
USED_UP = "is used up"
ENDED = "has ended"
NOBODY_WAS_THERE = "nobody was there to ask:"
BY_A_PERSON = "by the person who was asked"
ANSWERER_FAILED = "whoever was asked failed to answer"
ANSWER_UNREADABLE = "the answer cannot be read"
EQUAL_REFUSED = "an equal call was refused in this run, and nobody is asked again"


def refused(call: str, by: str = "", why: str = "") -> str:
    """Return that a call was refused: `by` what or whom, and `why` in the words of who did it, as far as known."""
    reason = f": {one_line(why, _REASON_CHARACTERS).rstrip('. ')}" if why else ""
    return f"{one_line(call, _CALL_CHARACTERS)} was refused{by and ' '}{by}{reason}."


def by_a_rule(title: str) -> str:
    """Return that a rule refuses."""
    return f"by {one_line(title, _TITLE_CHARACTERS)} of the policy"


def by_a_flow(flow: str) -> str:
    """Return that a flow of data refuses, which is `after_data` of it."""
    return f"by a flow rule of the policy, {one_line(flow, _FLOW_CHARACTERS)}"


def after_data(label: str, sources: Iterable[str], to: str) -> str:
    """Return which flow of data a call would be part of, as `after private from notes.read, to egress`."""
    received, reached = one_line(label, _LABEL_CHARACTERS), one_line(to, _LABEL_CHARACTERS)
    shown = few([one_line(source, _CALL_CHARACTERS) for source in sources], _SOURCES)
    return f"after {received} from {shown}, to {reached}"


def quota_title(name: str, number: int, tool: str) -> str:
    """Return which quota it is, by its name or else its number; `tool` is empty where all its tools share it."""
    named = f"quota '{one_line(name, _TITLE_CHARACTERS)}'" if name else f"quota {number}"
    return f"{named} for {one_line(tool, _CALL_CHARACTERS)}" if tool else named


def used_up_in_run(quota: str, calls: int) -> str:
    """Return that a run has made all the calls of a quota."""
    return f"the {one_line(quota, _QUOTA_CHARACTERS)} ({counted(calls, 'call')} in a run) is used up"


def used_up_for_now(quota: str, calls: int, seconds: int) -> str:
    """Return that the calls of a minute were made, and for how long there are no more."""
    return f"the {one_line(quota, _QUOTA_CHARACTERS)} ({counted(calls, 'call')} a minute) is used up for {seconds} s"


def nobody_answered(seconds: float) -> str:
    """Return that a person was asked and was too late."""
    return f"nobody answered within {seconds:g} s"


def nobody_agreed(call: str, flow: str) -> str:
    """Return that a flow of data needs a person, and there is none."""
    name, received = one_line(call, _CALL_CHARACTERS), one_line(flow, _REASON_CHARACTERS)
    return f"{name} was not called: {received}, a person has to agree and nobody is there to ask."


def of_a_grant(grant: str, lack: str) -> str:
    """Return why a grant for a tool does not cover a call: one of `FOR_OTHER_ARGUMENTS`, `USED_UP`, `ENDED`."""
    return f"the grant {one_line(grant, _GRANT_CHARACTERS)} {lack}"


def not_covered(call: str, why: str) -> str:
    """Return that a call needs a person, and there is none; `why` a grant for its tool does not cover it."""
    name = one_line(call, _CALL_CHARACTERS)
    return f"{name} was not called: {why}, and nobody is there to ask."


def nobody_allowed(call: str, pattern: str) -> str:
    """Return that a call needs a person, and there is none; `pattern` is what would allow it beforehand.

    It holds a server's name, and may be pasted into a shell: shown where nothing in it means something there.
    """
    is_shown = len(pattern) <= _PATTERN_CHARACTERS and _PLAIN_PATTERN.fullmatch(pattern)
    how = f", as with --allow '{pattern}'" if is_shown else ""
    name = one_line(call, _CALL_CHARACTERS)
    return f"{name} was not called: nobody has allowed it and nobody is there to ask. Allow it beforehand{how}."
