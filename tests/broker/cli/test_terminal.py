"""`codemode` on a real terminal: the question about pending calls, colours, the progress bar."""

from __future__ import annotations

import errno
import os
import pty
import subprocess

import pytest

ASK_TWICE = """
import asyncio
from tools import odd
print(await asyncio.gather(odd.echo(text='one'), odd.echo(text='two')))
"""


@pytest.fixture
def terminal(command, environment, tmp_path):
    """Runs codemode with a terminal on all three streams; returns exit code and screen text."""

    def run(*arguments: str, typed: bytes = b"", **more: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(  # noqa: S603  # our own command
            [command, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment | {"TERM": "xterm-256color"} | more,
            cwd=tmp_path,
        )
        os.close(theirs)
        os.write(ours, typed)
        screen = b""
        try:
            while piece := _read(ours):
                screen += piece
        finally:
            os.close(ours)
        return process.wait(timeout=60), screen.decode().replace("\r\n", "\n")

    return run


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError as error:
        if error.errno == errno.EIO:  # Linux: the other end is closed
            return b""
        raise


@pytest.fixture
def script(tmp_path):
    (tmp_path / "ask.py").write_text(ASK_TWICE)
    return "ask.py"


def test_pending_calls_are_asked_about_in_one_question(terminal, script, config):
    code, screen = terminal("run", script, "-c", config, typed=b"y\n")
    assert code == 0
    assert screen.count("Allow") == 1
    assert "['one', 'two']" in screen


def test_no_refuses_them(terminal, script, config):
    code, screen = terminal("run", script, "-c", config, typed=b"n\n")
    assert code == 4
    assert "ToolRefusedError" in screen


def test_an_empty_answer_is_no(terminal, script, config):
    code, _ = terminal("run", script, "-c", config, typed=b"\n")
    assert code == 4


def test_no_color_is_honoured(terminal, script, config):
    _, plain = terminal("run", script, "-c", config, "--allow", "*", NO_COLOR="1")
    assert "\x1b[3" not in plain


def test_mistakes_are_coloured_unless_no_color_is_set(terminal, tmp_path, config):
    (tmp_path / "mistaken.py").write_text("from tools import odd\nawait odd.ech(text='x')\n")
    code, screen = terminal("check", "mistaken.py", "-c", config)
    assert (code, "\x1b[31mthere is no tool `ech`" in screen) == (1, True)
    code, plain = terminal("check", "mistaken.py", "-c", config, NO_COLOR="1")
    assert (code, "there is no tool `ech`" in plain, "\x1b[3" in plain) == (1, True, False)


def test_a_bar_moves_while_the_image_compiles(terminal, tmp_path):
    (tmp_path / "one.py").write_text("print(1)")
    code, screen = terminal("run", "one.py", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert code == 0
    assert "Compiling the sandbox image" in screen
    assert "━" in screen
