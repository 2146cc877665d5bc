"""`codemode check`, and what `codemode run` does with mistakes."""

from __future__ import annotations

import json

import pytest

MISTAKEN = 'from tools import odd\nprint("started")\nif True:\n\tprint("日本", await odd.echo(txt=1), odd.no)\n'


@pytest.fixture
def mistaken(tmp_path):
    (tmp_path / "report.py").write_text(MISTAKEN, encoding="utf-8")
    return "report.py"


def test_each_mistake_is_shown_with_its_line_and_a_caret_and_exits_1(codemode, config, mistaken):
    finished = codemode("check", mistaken, "-c", config)
    assert (finished.returncode, finished.stderr) == (1, "")
    assert finished.stdout == (
        "report.py:4:29: echo has no parameter `txt` (did you mean `text`?)\n"
        '    print("日本", await odd.echo(txt=1), odd.no)\n'
        "                                 ^\n"
        "report.py:4:37: there is no tool `no` in tools.odd (there are: die, echo, fail)\n"
        '    print("日本", await odd.echo(txt=1), odd.no)\n'
        "                                         ^\n"
    )


def test_the_mistakes_are_one_json_value(codemode, config):
    finished = codemode("check", "-", "-c", config, "--json", stdin="from tools import odd\nawait odd.ech()")
    assert finished.returncode == 1
    assert json.loads(finished.stdout) == {
        "diagnostics": [
            {
                "line": 2,
                "column": 7,
                "code": "missing-attribute",
                "message": "there is no tool `ech` in tools.odd",
                "hint": "did you mean `echo`?",
            }
        ],
        "unchecked": [],
    }


def test_a_script_without_mistakes_exits_0_and_is_not_run(codemode, config):
    finished = codemode("check", "-", "-c", config, stdin="from tools import odd\nprint(await odd.die())")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "<stdin>: no mistakes found\n")


def test_without_a_config_a_script_is_checked_and_told_that_it_has_no_tools(codemode):
    finished = codemode("check", "-", stdin="1 + 1")
    assert (finished.returncode, finished.stderr) == (0, "<stdin>: no mistakes found\n")
    mistaken = codemode("check", "-", stdin="from tools import odd")
    assert mistaken.returncode == 1
    assert mistaken.stdout.startswith("<stdin>:1:19: ")
    assert mistaken.stderr.startswith("no config: ")


def test_a_script_that_cannot_be_checked_exits_2(codemode):
    finished = codemode("check", "-", stdin="x = 1\n" * 20_000)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "error: the script was not checked: the script is longer than 100000 characters" in finished.stderr


def test_a_server_that_is_down_exits_2_for_what_was_not_checked(codemode, write_config):
    config = write_config({"gone": {"command": "false"}})
    finished = codemode("check", "-", "-c", config, stdin="from tools import gone\nawait gone.echo()")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.startswith("server gone: it exited with code 1. ")
    assert "error: not all was checked: gone cannot be used" in finished.stderr
    assert "no mistakes found" not in finished.stderr


def test_of_a_long_line_the_part_around_a_mistake_is_shown_whatever_ends_a_line_elsewhere(codemode, config):
    before, after = "print(" + "'日', " * 40, "odd.no" + ", 'b'" * 40
    script = f"from tools import odd\nx = '\f\u2028'\n{before}{after})"
    mistake, line, caret = codemode("check", "-", "-c", config, stdin=script).stdout.splitlines()
    assert mistake.startswith(f"<stdin>:3:{len(before) + 1}: there is no tool `no` ")
    assert line == f"    {before[-80:]}{after[:80]}"
    assert caret == " " * (4 + 80 + before[-80:].count("日")) + "^"


def test_what_a_script_holds_cannot_drive_the_terminal(codemode, config):
    finished = codemode("check", "-", "-c", config, stdin="from tools import odd\nodd.x('\x1b[2J\u202e')")
    assert finished.returncode == 1
    assert "odd.x(' [2J ')" in finished.stdout
    assert "\x1b" not in finished.stdout


def test_run_stops_before_the_first_line_and_exits_1(codemode, config, mistaken):
    finished = codemode("run", mistaken, "-c", config, "--allow", "*")
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr.startswith("ScriptCheckError: The script was not started, nothing was executed. ")
    assert "\n  4:29: echo has no parameter `txt` (did you mean `text`?)\n" in finished.stderr


def test_run_starts_in_spite_of_mistakes_when_told_to(codemode, config, mistaken):
    warned = codemode("run", mistaken, "-c", config, "--allow", "*", "--check", "warn")
    assert warned.stdout == "started\n"
    assert warned.stderr.startswith("The check found 2 mistakes, as line:column:\n  4:29: ")
    assert "ToolArgumentsError" in warned.stderr
    off = codemode("run", mistaken, "-c", config, "--allow", "*", "--check", "off")
    assert off.stdout == "started\n"
    assert "The check found" not in off.stderr
