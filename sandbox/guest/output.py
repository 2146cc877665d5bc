"""Standard output and error of a script: every piece goes to the host at once, so that it survives a trap."""

import builtins
import io
import re
import sys
import warnings

PIECE = 16_384
"""Characters handed over at a time; the host refuses to take much more at once."""


_NEVER_AWAITED = re.compile(r"coroutine '(?:[^']*\.)?(\w+)' was never awaited")


class Stream(io.TextIOBase):
    """A text stream whose other end is the host."""

    encoding = "utf-8"
    errors = "backslashreplace"
    newlines = None

    def __init__(self, name, number, write):
        self.name = name
        self._number = number
        self._write = write
        self.buffer = _Bytes(self)

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        for piece in (text,) if 0 < len(text) <= PIECE else _pieces(text):
            self._write(self._number, piece if piece.isascii() else _whole(piece))
        return len(text)

    def writable(self):
        return True

    def fileno(self):
        raise io.UnsupportedOperation("a script's output has no file descriptor")

    def close(self):
        """Stay open: there is nothing behind it to release."""

    def reconfigure(self, **_):
        """Take any setting; text is handed over as UTF-8 at once in every case."""


def _pieces(text):
    return (text[begin : begin + PIECE] for begin in range(0, len(text), PIECE))


def _whole(piece):
    """Return a text without halves of surrogate pairs, which cannot be handed over."""
    return piece.encode("utf-8", "backslashreplace").decode("utf-8")


class _Bytes(io.RawIOBase):
    """`sys.stdout.buffer`, for scripts that print bytes."""

    def __init__(self, stream):
        self._stream = stream

    def writable(self):
        return True

    def write(self, data):
        self._stream.write(bytes(data).decode("utf-8", "backslashreplace"))
        return len(data)


class NoInput(io.TextIOBase):
    """Standard input of a script: there is none."""

    def readable(self):
        return True

    def readline(self, size=-1, /):
        raise EOFError("a script has no standard input: write the data into the script, or read it from a tool")

    read = readline


def print_at_once(*values, sep=" ", end="\n", file=None, flush=False):
    """Print like the builtin, but with one write: each one is a crossing into the host."""
    sep = " " if sep is None else sep
    end = "\n" if end is None else end
    if not isinstance(sep, str) or not isinstance(end, str):
        raise TypeError("sep and end must be None or strings")
    target = sys.stdout if file is None else file
    if target is None:
        return
    target.write(sep.join(map(str, values)) + end)
    if flush:
        target.flush()


def install(write) -> None:
    """Give the script its standard streams."""
    sys.stdout = sys.__stdout__ = Stream("<stdout>", 1, write)
    sys.stderr = sys.__stderr__ = Stream("<stderr>", 2, write)
    sys.stdin = sys.__stdin__ = NoInput()
    print_at_once.__name__ = print_at_once.__qualname__ = "print"
    print_at_once.__module__ = "builtins"
    builtins.print = print_at_once
    warnings.formatwarning = _format_warning


def _format_warning(message, category, filename, lineno, _line=None):
    """One line for each warning, without the advice to trace allocations."""
    forgotten = _NEVER_AWAITED.fullmatch(str(message)) if category is RuntimeWarning else None
    told = f"{message}, so it did not run: write `await {forgotten[1]}(...)`" if forgotten is not None else message
    return f"{filename}:{lineno}: {category.__name__}: {told}\n"
