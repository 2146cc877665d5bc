"""`codemode` on a real terminal: the question about pending calls, colours, the progress bar."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ASK_TWICE = """
import asyncio
from tools import odd
print(await asyncio.gather(odd.echo(text='one'), odd.echo(text='two')))
"""


@pytest.fixture
def terminal(command, environment, tmp_path):
    """Runs codemode with a terminal on all three streams; returns exit code and screen text."""

    def run(*arguments: str, typed: list[tuple[str, bytes]] | None = None, **more: str) -> tuple[int, str]:
        """Types each text when the screen shows, after what was typed before, the text beside it."""
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
        screen, seen, left = b"", 0, list(typed or [])
        try:
            while piece := _read(ours):
                screen += piece
                if left and left[0][0].encode() in screen[seen:]:
                    seen = len(screen)
                    os.write(ours, left.pop(0)[1])
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


DOWN, ENTER, CTRL_C = b"\x1b[B", b"\r", b"\x03"
QUESTION = "Which calls do you allow?"


def test_pending_calls_are_asked_about_in_one_question(terminal, script, config):
    code, screen = terminal("run", script, "-c", config, typed=[(QUESTION, b"y" + ENTER)])
    assert code == 0
    assert screen.count("The script wants to call") == 1
    assert 'text="one", "two"' in screen
    assert "['one', 'two']" in screen


def test_the_arrow_keys_choose(terminal, script, config):
    code, screen = terminal("run", script, "-c", config, typed=[(QUESTION, DOWN + ENTER)])
    assert (code, "['one', 'two']" in screen) == (0, True)


@pytest.mark.parametrize("keys", [ENTER, b"n" + ENTER], ids=["enter at once", "no"])
def test_anything_but_a_yes_refuses_them(terminal, script, config, keys):
    code, screen = terminal("run", script, "-c", config, typed=[(QUESTION, keys)])
    assert code == 4
    assert "ToolRefusedError" in screen


def test_a_note_reaches_the_script(terminal, script, config):
    typed = [(QUESTION, b"r" + ENTER), ("Note for the script", b"not on a Sunday" + ENTER)]
    code, screen = terminal("run", script, "-c", config, typed=typed)
    assert code == 4
    assert "odd.echo was refused: not on a Sunday." in screen


def test_calls_like_these_are_allowed_and_others_asked_about(terminal, tmp_path, config):
    (tmp_path / "loop.py").write_text(
        "from tools import odd\n"
        "for n in range(40): await odd.echo(text=f'note {n}')\n"
        "try: await odd.echo(text='something else')\n"
        "except PermissionError as error: print('caught:', error)\n"
    )
    tests = b'\x05\x15{"glob": "note *"}'
    typed = [(QUESTION, b"e" + ENTER), ("a test as JSON", tests + ENTER), ("something else", b"n" + ENTER)]
    code, screen = terminal("run", "loop.py", "-c", config, typed=typed)
    assert code == 0, screen
    assert "caught: odd.echo was refused." in screen
    assert screen.count("The script wants to call") == 2


def test_what_calls_like_these_have_is_shown_whole_beside_a_menu_that_the_terminal_cuts(terminal, tmp_path, config):
    folder = "/".join(f"folder {number}" for number in range(12))
    (tmp_path / "ask.py").write_text(ASK_TWICE.replace("'one'", f"'{folder}/a'").replace("'two'", f"'{folder}/b'"))
    code, screen = terminal("run", "ask.py", "-c", config, typed=[(QUESTION, b"a" + ENTER)])
    assert code == 0, screen
    assert f'calls like these have: {{"":{{"keys":["text"]}},"/text":{{"path":"{folder}/*"}}}}' in screen


def test_a_number_of_calls_is_allowed_and_then_asked_about_again(terminal, tmp_path, config):
    (tmp_path / "loop.py").write_text("from tools import odd\nfor n in range(3): print(await odd.echo(text='same'))\n")
    typed = [
        (QUESTION, b"c" + ENTER),
        ("How many calls", b"\x15none" + ENTER),
        ("write a number", b"\x152" + ENTER),
        (QUESTION, b"n" + ENTER),
    ]
    code, screen = terminal("run", "loop.py", "-c", config, typed=typed)
    assert (code, screen.count("same\n")) == (4, 2), screen


def test_the_definition_is_shown_before_deciding(terminal, script, config):
    typed = [(QUESTION, b"d" + ENTER), ('"description"', b"n" + ENTER)]
    code, screen = terminal("run", script, "-c", config, typed=typed)
    assert code == 4
    assert "\\u001b" in screen  # the server's description has a control character, shown as an escape


ASK_TWO = """
import asyncio
from tools import odd
await asyncio.gather(odd.echo(text='ls' + ' ' * 500 + '; rm -rf /'), odd.fail(text='x'))
"""


def test_arguments_are_shown_in_full_and_each_tool_is_named_above_its_menu(terminal, tmp_path, config):
    (tmp_path / "ask.py").write_text(ASK_TWO)
    typed = [
        ("Which calls of odd.echo, odd.fail do you allow?", b"o" + ENTER),
        ("Which calls of odd.echo do you allow?", b"f" + ENTER),
        ("; rm -rf /", b"n" + ENTER),
        ("Which calls of odd.fail do you allow?", b"n" + ENTER),
    ]
    code, screen = terminal("run", "ask.py", "-c", config, typed=typed)
    assert code == 4, screen
    assert f'|   "text": "ls{" " * 500}; rm -rf /"' in screen


def test_a_plain_line_is_read_where_the_terminal_can_do_no_more(terminal, script, config):
    for typed, expected in ((b"y\n", 0), (b"n\n", 4), (b"\n", 4)):
        code, _ = terminal("run", script, "-c", config, typed=[("Allow these 2 calls? [y/N]", typed)], TERM="dumb")
        assert code == expected


def test_ctrl_c_at_the_question_ends_the_run(terminal, script, config):
    code, screen = terminal("run", script, "-c", config, typed=[(QUESTION, CTRL_C)])
    assert code == 130, screen
    assert "Traceback" not in screen


def test_ctrl_c_at_the_question_ends_a_run_that_was_started_with_the_signal_ignored(terminal, script, config):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what it starts in the background
    try:
        code, screen = terminal("run", script, "-c", config, typed=[(QUESTION, CTRL_C)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert code == 130, screen
    assert "Traceback" not in screen


def test_a_server_that_a_person_starts_at_a_terminal_says_that_it_is_for_clients(terminal, config):
    code, screen = terminal("serve", "-c", config, typed=[("a client starts this command by itself.", b"\x04")])
    assert code == 0, screen
    assert "--http HOST:PORT serves at an address." in screen


def test_no_color_is_honoured(terminal, script, config):
    code, screen = terminal("run", script, "-c", config, "--allow", "*")
    assert (code, "\x1b[32mok" in screen) == (0, True)
    code, plain = terminal("run", script, "-c", config, "--allow", "*", NO_COLOR="1")
    assert (code, "ok" in plain, "\x1b[3" in plain) == (0, True, False)


def test_the_log_is_coloured_unless_no_color_is_set(terminal, script, config):
    ready = "server is ready"
    code, screen = terminal("run", script, "-c", config, "--allow", "*", "-v")
    assert (code, f"\x1b[1m{ready}" in screen) == (0, True)
    code, plain = terminal("run", script, "-c", config, "--allow", "*", "-v", NO_COLOR="1")
    assert (code, f"[info     ] {ready}" in plain) == (0, True)


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


CURIOUS = Path(__file__).parents[1] / "servers" / "curious.py"
ASK = "from tools import curious\nprint(await curious.ask(what=WHAT))\n"


@pytest.fixture
def curious(write_config, tmp_path):
    """A server that may ask the person at the terminal."""
    env = {"CURIOUS_LOG": str(tmp_path / "log")}
    return write_config(
        {"curious": {"command": sys.executable, "args": [str(CURIOUS)], "env": env, "elicitation": True}}
    )


def test_what_a_server_asks_is_answered_field_by_field(terminal, tmp_path, curious):
    (tmp_path / "ask.py").write_text(ASK.replace("WHAT", "'name'"))
    typed = [
        ("What do you do?", b"y" + ENTER),
        ("Your name", b"Anna" + ENTER),
        ("colour", DOWN + ENTER),
        ("old", b"\x1b[A" + ENTER),
        ("age", b"x" + ENTER),
        ("not of type", b"\x157" + ENTER),
    ]
    code, screen = terminal("run", "ask.py", "-c", curious, "--allow", "curious.ask", typed=typed)
    assert code == 0, screen
    assert "The server curious asks (while its tool ask is called):\n| Who are you?" in screen
    told = json.loads((tmp_path / "log").read_text().splitlines()[-1])["told"]
    assert told == {"action": "accept", "content": {"name": "Anna", "colour": "g", "old": True, "age": 7}}


def test_what_can_be_ticked_is_shown_with_what_the_server_gets(terminal, tmp_path, curious):
    (tmp_path / "ask.py").write_text(ASK.replace("WHAT", "'colours'"))
    typed = [("What do you do?", b"y" + ENTER), ("colours", DOWN + b" " + ENTER)]
    code, screen = terminal("run", "ask.py", "-c", curious, "--allow", "curious.ask", typed=typed)
    assert code == 0, screen
    assert "Red (r)" in screen
    told = json.loads((tmp_path / "log").read_text().splitlines()[-1])["told"]
    assert told == {"action": "accept", "content": {"colours": ["g"]}}


def test_a_servers_form_is_refused_with_enter_alone(terminal, tmp_path, curious):
    (tmp_path / "ask.py").write_text(ASK.replace("WHAT", "'password'"))
    typed = [("What do you do?", ENTER)]
    code, screen = terminal("run", "ask.py", "-c", curious, "--allow", "curious.ask", typed=typed)
    assert (code, "do not give it one" in screen) == (0, True), screen
    assert '"action": "decline"' in (tmp_path / "log").read_text()


def test_an_address_is_shown_and_the_server_told_to_go_on(terminal, tmp_path, curious):
    (tmp_path / "ask.py").write_text(ASK.replace("WHAT", "'url'"))
    typed = [("What do you do?", b"y" + ENTER)]
    code, screen = terminal("run", "ask.py", "-c", curious, "--allow", "curious.ask", typed=typed, BROWSER="false")
    assert (code, "pay.example:\nhttps://pay.example/checkout?id=1" in screen) == (0, True), screen


@pytest.mark.parametrize("columns", ["0", "40", "60", "120"])
def test_a_terminal_of_any_width_shows_ids_and_words_whole(terminal, codemode, columns):
    codemode("run", "-", stdin="1")
    code, screen = terminal("recordings", "list", COLUMNS=columns)
    assert code == 0
    assert re.search(r"run_[0-9a-f]{16}\b", screen)
    assert "completed" in screen
    assert "<stdin>" in screen


def test_in_a_narrow_terminal_a_heading_stands_on_the_line_of_its_value(terminal, codemode):
    codemode("run", "-", stdin="1")
    code, screen = terminal("recordings", "list", COLUMNS="40")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen)
    assert code == 0
    assert re.search(r"^  began \d{4}-\d\d-\d\d \d\d:\d\d:\d\d +$", plain, re.MULTILINE), plain
    assert re.search(r"^  script <stdin>  state completed +$", plain, re.MULTILINE), plain
