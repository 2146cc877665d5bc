"""What scripts are told of calls that do not come about or do not end well. Nothing here decides anything.

Above: preparation.py, tool_calls.py, script_functions.py and upstream.py. Below: nothing. Each text says what happened,
what was sent, and what to do next. What a failed script may have meant is in texts/hint_texts.py, what replies around a
script say in texts/run_texts.py, what a decision says beside it. tests/broker/surface_texts.txt has them all.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from codegen.plain_text import few, one_line, that_fit

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME_CHARACTERS = 80
_ASKED_CHARACTERS = 210
_PARAMETERS = 12
_FAULT_CHARACTERS = 450
_FAULTS_CHARACTERS = 600
_PLACES_CHARACTERS = 200
_PLACE_CHARACTERS = 250
_FETCHED_NAME_CHARACTERS = 250
_FETCHED_CHARACTERS = 280
_CHANGES_CHARACTERS = 100
_SUGGESTED_CHARACTERS = 400
_WORDS_CHARACTERS = 200
_CODES = 2**31
"""More than any code of an error, in either direction; a server may send a number of thousands of digits."""

PROBLEM_CHARACTERS = 400
"""How much is said of what is wrong with a server."""

WITHDRAWN = " any more: its server has withdrawn it"
NOT_AS_ARGUMENTS = (
    "the arguments cannot be written as JSON: a number is not finite, a text not Unicode, or a value of a kind that "
    "JSON lacks, as a set or a date"
)

NOTHING_TO_DISPLAY = (
    "There is nothing to display: pass a block as a tool returned it, or bytes with their mime_type, as in "
    "display(data, mime_type='image/png')."
)
NO_BLOCK = "read_bytes() knows no such block. Pass it as the tool returned it."
NO_BASE64 = (
    "The server's data for this block is not base64, and cannot be read. Do without it: print(block) shows what else "
    "there is of it."
)
NO_MODEL = "extract() is not available: this broker has no model for it. Parse the text in the script, or print it."
EXTRACT_TAKES = "extract() takes a value, a type and instructions, as in extract(text, list[str], 'Only names.')."
MODEL_FAILED = (
    "extract() failed: the model gave no usable answer. Nothing else happened; print the text and read it yourself."
)
DECLINED_BEFORE = "the person has declined this form before, during this run"
AS_DICT = "Pass a dict: the `_asdict()` of a named tuple"
NOW_DESCRIBED = "They are described now: check that the script fits the stubs below, and run it again."
NOT_FITTING = (
    "They are described now, and the script does not fit them: correct it by the stubs below, and run it again."
)
_FOR_LESS = "If it only reads, call it again and ask for less; if not, do without its result."
CONVERT_TO_INT = "Write int(...) around it"
CONVERT_TO_FLOAT = "Write float(...) around it"
CONVERT_TO_STR = "Write str(...) around it"
NOT_AS_JSON = "Pass the value itself, without json.dumps()"
IN_A_LIST = "Pass a list, even for one item: [...]"


def of_a_server(server: str) -> str:
    """Return what to do about a fetch that names a server and no tool of it."""
    server = one_line(server, _NAME_CHARACTERS)
    return f"{server} is a server: search_tools({json.dumps({'query': '', 'server': server})}) lists its tools"


def last_words(words: str) -> str:
    """Return what a server wrote before it ended, as an end of what is wrong with it; empty where it wrote nothing."""
    return f"; its last words: {_in_quotes(words)}" if words else ""


def words_of_error(words: str) -> str:
    """Return what a server said in an error, as an end of what is wrong with it; empty where it said nothing."""
    return f"; its words: {_in_quotes(words)}" if words else ""


def _in_quotes(words: str) -> str:
    said = one_line(words, _WORDS_CHARACTERS).replace('"', "'")
    return f'"{said}"'


def bounded_problem(problem: str, limit: int = PROBLEM_CHARACTERS) -> str:
    """Return what is wrong with a server on one line; words of its own stay in quotes where they are cut."""
    shown = one_line(problem, limit)
    return f'{shown}"' if shown.count('"') % 2 else shown


def no_function(name: str) -> str:
    """Return that scripts have no such function."""
    return (
        f"There is no function {one_line(name, _NAME_CHARACTERS)}. Nothing was called. Beside tools, a script has "
        "display(), read_bytes() and extract()."
    )


def extract_reads(characters: int) -> str:
    """Return that a text is too long for `extract`."""
    return (
        f"extract() reads at most {characters} characters at a time. The model was not asked. Pass the text in "
        f"parts, as extract(text[:{characters}], ...)."
    )


def extract_got(fault: str) -> str:
    """Return that a model's answer is not of the type that was asked for."""
    return (
        f"extract() got an answer that does not fit the type: {one_line(fault, _FAULT_CHARACTERS)}. "
        "Nothing else happened; say more in `instructions`, or print the text and read it yourself."
    )


def cut_in_the_middle(characters: int, *, is_in_content: bool) -> str:
    """Return the line that stands in the middle of a server's text that is cut."""
    more = "; the exception's `content` has the whole text" if is_in_content else ""
    return f"[about {characters} characters are left out here{more}]"


def fetch_request(names: Sequence[str]) -> str:
    """Return the literal request that describes these tools."""
    return f"get_tool_details({json.dumps({'tools': list(names)})})"


def search_request(name: str) -> str:
    """Return the literal request that looks for tools with the words of a name."""
    words = " ".join(re.findall(r"[A-Za-z0-9]+", name))[:_NAME_CHARACTERS]
    return f"search_tools({json.dumps({'query': words})})"


def script_not_described(places: Sequence[str], changed: Sequence[str]) -> str:
    """Return why a script was not started that names tools which were not described.

    Args:
        places: The tools as the script calls them, with their lines.
        changed: What is different in those that were described once.
    """
    since = f" {one_line('; '.join(changed), _CHANGES_CHARACTERS)}." if changed else ""
    or_changed = ", or have changed since they were" if changed else ""
    named = [one_line(place, _PLACE_CHARACTERS) for place in places]
    shown = few(named, len(that_fit(named, _PLACES_CHARACTERS)))
    return f"The script was not started: these tools have not been described yet{or_changed}: {shown}.{since}"


def fetch_them(names: Sequence[str], *, are_others: bool = False) -> str:
    """Return how the tools of such a script become described, by their qualified names.

    `are_others` says that the stubs of the other tools of the script stand below.
    """
    fetched = that_fit(names, _FETCHED_CHARACTERS)
    if are_others:
        rest = ", the rest the same way" if len(fetched) < len(names) else ""
        return (
            f"Those whose stubs stand below are described now. Fetch the other {len(names)} with "
            f"{fetch_request(fetched)}{rest}; check that the script fits all stubs, and run it again."
        )
    others = ", the others the same way," if len(fetched) < len(names) else ""
    return f"Fetch them with {fetch_request(fetched)}{others} and run the script again."


def call_not_described(function: str, name: str, changed: str) -> str:
    """Return why a call was not made whose tool has another definition than the one that was described, or none."""
    since = f" Since it was described, {one_line(changed, _CHANGES_CHARACTERS)}." if changed else ""
    return (
        f"{function} was not called: you have not fetched its current description.{since} Fetch it with "
        f"{fetch_request([name])} and run the script again."
    )


def bad_arguments(function: str, faults: Sequence[str]) -> str:
    """Return why a call was not made whose arguments do not fit."""
    return f"{function}() was not called: " + "\n".join(that_fit(faults, _FAULTS_CHARACTERS))


def fault(what: str, instead: str) -> str:
    """Return what is wrong with an argument, and what to write instead."""
    return f"{one_line(what, _FAULT_CHARACTERS)}{instead and '. '}{instead}"


def leave_out(parameter: str) -> str:
    """Return how a parameter is left out that takes no None."""
    name = one_line(parameter, _NAME_CHARACTERS)
    return f"Leave it out when it is None: `**({{}} if {name} is None else {{'{name}': {name}}})`"


def no_parameter(names: Sequence[str], known: Sequence[str]) -> str:
    """Return which arguments a tool does not know, and which it does."""
    shown = few((one_line(repr(name), _NAME_CHARACTERS) for name in names), 3)
    takes = one_line(few(known, _PARAMETERS), _PLACES_CHARACTERS) or "nothing"
    return f"it has no parameter {shown} (it takes: {takes})"


def taken_back(name: str) -> str:
    """Return why a call was not made that had been allowed."""
    name = one_line(name, _NAME_CHARACTERS)
    return (
        f"{name} was refused: the permission for it was revoked while it waited for its turn. Nothing was sent; do "
        "without it, or ask the user to allow it again."
    )


def input_refused(server: str, reason: str) -> str:
    """Return why a call failed that its server answered with a question."""
    why = one_line(reason, PROBLEM_CHARACTERS)
    return (
        f"{server} asked for input during the call, which was refused: {why}. It may have acted: check before you "
        "call again."
    )


def forms_enough(most: int) -> str:
    """Return why no further form of a server is shown, for `input_refused`."""
    return f"the person has been shown {most} forms during this run, and is shown no more"


def server_disabled(server: str) -> str:
    """Return why a server has no tools, and what a model can do about it."""
    return f"{one_line(server, _NAME_CHARACTERS)} is disabled in the config: do without it"


def unavailable(server: str, problem: str) -> str:
    """Return that a server cannot be called now."""
    return f"{server} is not available: {bounded_problem(problem)}. {until_back(server)}"


def until_back(server: str) -> str:
    """Return that nothing was sent to a server that is down, and which search says whether it still is."""
    search = json.dumps({"query": "", "server": server[:_NAME_CHARACTERS]}, ensure_ascii=False)
    return f"Nothing was sent. Do without it, or call again once search_tools({search}) says this no more."


def refused_by_http(server: str, status: int, seconds: float | None = None) -> str:
    """Return that a server did not let a call in: its credentials are those of the operator.

    With `seconds`, no new credentials came within that time.
    """
    since = "" if seconds is None else f", and no new token came within {seconds:g} s"
    return (
        f"{server} is not available: it refused the call with HTTP {status}{since}. The operator has to log in or "
        "correct its credentials. Nothing was executed."
    )


def not_taken(server: str, seconds: float) -> str:
    """Return that a call could not be sent within its time."""
    return (
        f"{server} is not available: it took no request for {seconds:g} s. Nothing was sent. Call again later, with "
        "fewer calls at a time."
    )


def not_found(function: str, near: Sequence[str], *, is_withdrawn: bool = False) -> str:
    """Return that there is no such tool."""
    meant = " or ".join(that_fit(near, _SUGGESTED_CHARACTERS))
    hint = f"Did you mean {meant}?" if near else f"Try {search_request(function)}."
    gone = WITHDRAWN if is_withdrawn else ""
    return f"There is no tool {one_line(function, _NAME_CHARACTERS)}{gone}. Nothing was sent. {hint}"


def no_tool(name: str, near: Sequence[str], *, is_ambiguous: bool = False, is_withdrawn: bool = False) -> str:
    """Return that there is no tool of a name, or with `is_ambiguous` several, whose names are those `near`."""
    shown = one_line(repr(name), _ASKED_CHARACTERS)
    names = that_fit(near, _SUGGESTED_CHARACTERS)
    if is_ambiguous:
        return f"Several servers have a tool {shown}. Say which: {few(near, len(names))}."
    hint = f" Did you mean {' or '.join(names)}?" if near else ""
    return f"There is no tool {shown}{WITHDRAWN if is_withdrawn else ''}.{hint}"


def json_rpc_error(code: int) -> str:
    """Name an error of a server by its code."""
    return f"JSON-RPC error {code}" if abs(code) < _CODES else "a JSON-RPC error of an impossible code"


def answered_with_error(server: str, code: int) -> str:
    """Return that a server answered a call with an error of the protocol; what it says itself comes behind."""
    return f"{server} answered with {json_rpc_error(code)}. It may have acted: check before you call again."


def not_written_down(name: str) -> str:
    """Return why a call was not made that could not be written down."""
    name = one_line(name, _NAME_CHARACTERS)
    return (
        f"{name} was not called: the audit cannot be written, and unaudited calls are not made. Nothing was sent. The "
        "broker's operator has to repair the store (`codemode doctor` says how); then call it again."
    )


def text_of(server: str) -> str:
    """Return the first line of a displayed text that a server sent."""
    return f"[text of {server}]\n"


def no_answer(server: str, seconds: float) -> str:
    """Return that a server did not answer in time."""
    return (
        f"{server} did not answer within {seconds:g} s. The call was cancelled; the server may have acted. "
        "Check before you repeat it."
    )


def reported_timeout(server: str) -> str:
    """Return that a server said that it took too long."""
    return f"{server} reported a timeout. It may have acted; check before you repeat it."


def cut_off(function: str) -> str:
    """Return that a run ended before the answer to a call came, and that the call is not sent again."""
    return (
        f"{one_line(function, _NAME_CHARACTERS)} was sent, then its run was cut off before the answer came. It may "
        "have taken effect and is not repeated; check before you call again."
    )


def lost_answer(server: str, reason: str, *, is_too_large: bool = False) -> str:
    """Return that what became of a call is not known; a call whose answer was too large gets none that is as large."""
    why = bounded_problem(reason)
    return (
        f"The answer of {server} was lost: {why}. The call was sent and may have taken effect. It is not repeated; "
        f"check before you call again{', and ask for less' if is_too_large else ''}."
    )


def bad_answer(server: str) -> str:
    """Return that a server answered with what is no answer."""
    return f"{server} sent an answer that the protocol does not allow. It may have acted; check before you repeat it."


def not_passed_on(function: str) -> str:
    """Return that a server's answer is none that a client would take."""
    return f"{function} sent an answer that cannot be passed on. It may have acted; check before you repeat it."


def unfit_result(name: str, fault: str, *, is_too_large: bool = False) -> str:
    """Return why a script is not given the result of a call that was made."""
    said = f"The result of {one_line(name, 130)} {one_line(fault, _FAULT_CHARACTERS)}."
    instead = _FOR_LESS if is_too_large else f"Do without its result, or look for another tool: {search_request(name)}."
    return f"{said} The call was made and is not repeated. {instead}"


def still_to_be_read(server: str, tool: str, said: str) -> str:
    """Return that a server executed nothing, as it does not see that the tool's description was read."""
    named, words = one_line(tool, _NAME_CHARACTERS), one_line(said, PROBLEM_CHARACTERS)
    quoted = f" [text of {server}] {words}" if words else ""
    return (
        f"{server} still says that the description of {named} must be read, though it was read again for this call. "
        f"Nothing was executed, and another fetch will not help. Look for another tool: {search_request(tool)}, or "
        f"tell the user.{quoted}"
    )


def not_described_now(server: str, tool: str) -> str:
    """Return that a server executed nothing before a tool is read again, and does not let it be read."""
    named = one_line(tool, _NAME_CHARACTERS)
    return (
        f"{server} wants the description of {named} to be read again before it takes the call, and does not give it "
        "now. Nothing was executed. Try again in a moment."
    )


def changed_at_server(server: str, tool: str) -> str:
    """Return that a server executed nothing, as the tool is not any more what it was described as."""
    named = one_line(tool, _NAME_CHARACTERS)
    return (
        f"{named} of {server} has changed since it was described. Nothing was executed. Fetch it again with "
        f"{fetch_request([f'{server}.{tool}'[:_FETCHED_NAME_CHARACTERS]])} and run the script again."
    )
