"""How a script's failure is told: its type, its message and a traceback of its own lines, all of bounded length.

What an exception says of itself may be the script's own code, and raise or lie.
"""

import collections
import contextlib
import io
import itertools
import linecache
import operator
import traceback
import types

MAX_TRACEBACK = 8_000
MAX_MESSAGE = 4_000
"""Characters of a traceback and of a message; the middle of a longer one is left out."""

MAX_LINE = 400
PART_OF_LINE = 160
"""Characters of a line of source that a traceback shows whole; of a longer one it shows that many around the place."""

MAX_GROUP = 200
"""Exceptions of a group, nested ones included, that a traceback tells of."""

MAX_LEAVES = 20
"""Exceptions of a group that are looked into for what explains them."""

MAX_CHAIN = 200
"""Exceptions that a traceback follows to the ones before them."""

_OURS = __file__.removesuffix("failures.py")
_exit_code = SystemExit.__dict__["code"].__get__
_traceback = BaseException.__dict__["__traceback__"].__get__
_cause = BaseException.__dict__["__cause__"]
_context = BaseException.__dict__["__context__"]
_suppresses_context = BaseException.__dict__["__suppress_context__"]
_qualname = type.__dict__["__qualname__"].__get__


def install() -> None:
    """Leave our own lines out of the tracebacks that a script prints."""
    shown = traceback.StackSummary.format_frame_summary

    def format_frame_summary(self, frame, **options):
        return None if frame.filename.startswith(_OURS) else shown(self, frame, **options)

    traceback.StackSummary.format_frame_summary = format_frame_summary


def keep_source(filename: str, source: str) -> None:
    """Have tracebacks show the lines of a script, which end where Python's do: a form feed ends none."""
    linecache.cache[filename] = (len(source), None, io.StringIO(source, newline=None).readlines(), filename)


def is_good_exit(error: BaseException) -> bool:
    """Tell whether this is `sys.exit()` without a complaint; `isinstance` would believe what it says it is."""
    if not issubclass(type(error), SystemExit):
        return False
    code = _exit_code(error)
    return code is None or (type(code) in (int, bool) and code == 0)


def innermost(error: BaseException) -> types.TracebackType | None:
    """Return the place in a traceback at which an exception was raised."""
    place = _traceback(error)
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place


def first_leaves(error: BaseException) -> list:
    """Return an exception, or of a group the first ones that are in it, however deep."""
    return list(itertools.islice(_leaves(error), MAX_LEAVES))


def _leaves(error):
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for one in error.exceptions:
        yield from _leaves(one)


def add_notes(error: BaseException, notes: list) -> None:
    """Add what is there to be said to an exception that takes notes."""
    for note in notes:
        if note:
            try:
                BaseException.add_note(error, note)
            except TypeError:
                return


def text_of(value: object, convert=str) -> str:
    """Return the text of a value, at most as long as a message."""
    try:
        return _shortened(convert(value), MAX_MESSAGE)
    except Exception as error:
        return f"<no text: {_qualname(type(error))}>"


def describe(error: BaseException, filenames: set) -> dict:
    """Turn an exception into type, message and a traceback of the lines of these scripts alone."""
    try:
        return _described(error, filenames)
    except MemoryError:
        raise
    except BaseException as failure:
        return _as_far_as_known(error, failure, filenames)


def _described(error, filenames):
    kind = type(error)
    if isinstance(error, BaseExceptionGroup):
        error = _pruned(error)
    with _short_chains(error):
        # Lines are looked up after frames of other files are gone: for those `linecache` would import and read.
        told = traceback.TracebackException.from_exception(error, compact=True, lookup_lines=False)
    _keep_own_lines(told, filenames)
    return {
        "type": _shortened(_qualified(kind), MAX_MESSAGE),
        "message": _shortened(_message(told), MAX_MESSAGE),
        "traceback": _shortened("".join(told.format()), MAX_TRACEBACK),
    }


def _as_far_as_known(error, failure, filenames):
    """Tell of an exception without asking it: where it comes from, and what it raised when it was asked."""
    kind = _qualname(type(error))
    message = f"its message cannot be read: reading it raised {_qualname(type(failure))}"
    lines, place = [], _traceback(error)
    while place is not None:
        if place.tb_frame.f_code.co_filename in filenames:
            lines.append(f'  File "{place.tb_frame.f_code.co_filename}", line {place.tb_lineno}\n')
        place = place.tb_next
    text = f"{''.join(lines)}{kind}: {message}\n"
    return {"type": _shortened(kind, MAX_MESSAGE), "message": message, "traceback": _shortened(text, MAX_TRACEBACK)}


def _shortened(text, most):
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[{len(text) - most} characters left out]\n{text[-half:]}"


def _pruned(group):
    """Return a group with its first `MAX_GROUP` exceptions: making a traceback of a hundred thousand takes minutes."""
    room = MAX_GROUP

    def prune(node):
        nonlocal room
        kept = []
        for member in node.exceptions:
            if room <= 0:
                break
            room -= 1
            kept.append(prune(member) if isinstance(member, BaseExceptionGroup) else member)
        if len(kept) == len(node.exceptions) and all(map(operator.is_, kept, node.exceptions)):
            return node
        message = node.message
        if len(kept) < len(node.exceptions):
            message = f"{message} [{len(kept)} of {len(node.exceptions)} shown]"
        told = BaseExceptionGroup(message, kept or [RuntimeError("not shown: too many exceptions")])
        return told.with_traceback(node.__traceback__)

    return prune(group)


@contextlib.contextmanager
def _short_chains(error):
    """Have one exception stand for all that came long before: making a traceback of ten thousand takes seconds."""
    waiting, seen, parted = collections.deque([error]), set(), []
    try:
        while waiting:
            one = waiting.popleft()
            if id(one) in seen:
                continue
            seen.add(id(one))
            link = _context if _cause.__get__(one) is None else _cause
            earlier = None if link is _context and _suppresses_context.__get__(one) else link.__get__(one)
            if len(seen) <= MAX_CHAIN:
                waiting += [] if earlier is None else [earlier]
                waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
            elif earlier is not None:
                parted.append((one, link, earlier, _suppresses_context.__get__(one)))
                link.__set__(one, RuntimeError("not shown: too many exceptions came before"))
        yield
    finally:
        for one, link, earlier, suppresses in parted:
            link.__set__(one, earlier)
            _suppresses_context.__set__(one, suppresses)


def _keep_own_lines(told, filenames):
    seen, groups = set(), []
    waiting = [told]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.stack[:] = [_with_short_line(frame) for frame in one.stack if frame.filename in filenames]
        if getattr(one, "filename", None) in filenames:
            _show_source(one)
        if _is_of_library(one.__cause__, filenames):
            one.__cause__ = None
        if _is_of_library(one.__context__, filenames):
            one.__context__ = None
        groups += [one] if one.exceptions else []
        waiting += [one.__cause__, one.__context__, *(one.exceptions or ())]
    for group in reversed(groups):
        _tell_once(group)


def _is_of_library(told, filenames):
    """Tell whether an exception was raised and caught without the script: `CancelledError` in a timeout of asyncio."""
    return told is not None and bool(told.stack) and all(frame.filename not in filenames for frame in told.stack)


def _tell_once(group):
    """Have one exception of a group stand for all that are told in the same words."""
    alike = collections.defaultdict(list)
    for one in group.exceptions:
        alike["".join(one.format())].append(one)
    for first, *others in alike.values():
        if others:
            first.__notes__ = [*(first.__notes__ or ()), f"[and {len(others)} more like this one]"]
    group.exceptions[:] = [same[0] for same in alike.values()]


def _with_short_line(frame):
    line = linecache.getline(frame.filename, frame.lineno or 0)
    if len(line) <= MAX_LINE:
        return frame
    # Columns count bytes. Without them there are no marks below the line, which take seconds for a million characters.
    column = len(line.encode("utf-8", "replace")[: frame.colno or 0].decode("utf-8", "ignore"))
    begin, end = _around(column, len(line))
    shown = f"{'…' * (begin > 0)}{line[begin:end].strip()}{'…' * (end < len(line))}"
    return traceback.FrameSummary(frame.filename, frame.lineno, frame.name, lookup_line=False, line=shown)


def _show_source(told):
    """Give a `SyntaxError` its line, which one that is found after parsing lacks, and not too much of it."""
    if told.text is None and told.lineno is not None:
        told.text = linecache.getline(told.filename, int(told.lineno)) or None
    if told.text is not None and len(told.text) > MAX_LINE:
        begin, end = _around(told.offset or 0, len(told.text))
        told.text = told.text[begin:end]
        told.offset, told.end_offset = (place and max(1, place - begin) for place in (told.offset, told.end_offset))


def _around(place, length):
    begin = max(0, min(place - PART_OF_LINE // 2, length - PART_OF_LINE))
    return begin, begin + PART_OF_LINE


def _qualified(cls):
    module = cls.__module__
    return cls.__qualname__ if module in ("builtins", "__main__", "tools") else f"{module}.{cls.__qualname__}"


def _message(told):
    """Return the exception's own line without its type, so that Python's suggestions ("Did you mean") stay in it."""
    lines = list(told.format_exception_only())
    notes, told.__notes__ = told.__notes__, None
    own = list(told.format_exception_only())
    told.__notes__ = notes
    _, separator, message = own[-1].rstrip("\n").partition(": ")
    return "\n".join([message if separator else "", "".join(lines[len(own) :])]).strip("\n")
