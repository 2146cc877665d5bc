"""`codemode replay`, `runs`, `resume`, `recordings`: as a person or a job uses them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "history"
SCRIPT = "from tools import odd\nfor word in ['one', 'two']:\n    print(await odd.echo(text=word))\n"


def recorded_script():
    return (EXAMPLE / "report.py").read_text()


def unsealed(path, *changes):
    """Copy the example's recording without its seal, with texts replaced."""
    lines = (EXAMPLE / "recording.jsonl").read_text().splitlines(keepends=True)[:-1]
    text = "".join(lines)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return str(path)


def test_the_recorded_example_replays_without_servers_or_config(codemode):
    finished = codemode("replay", str(EXAMPLE / "recording.jsonl"))
    assert finished.returncode == 0, finished.stderr
    assert "same" in finished.stderr


def test_the_first_difference_is_shown_with_line_and_diff(codemode, tmp_path):
    # The answer to the last call is another: the script prints another number.
    name = unsealed(tmp_path / "run.jsonl", ('"max_count":30', '"max_count":31'))
    finished = codemode("replay", name)
    assert finished.returncode == 1
    assert "line 73: call 1 (git.git_log) came out differently" in finished.stderr
    assert '-    "max_count": 31' in finished.stderr
    assert '+    "max_count": 30' in finished.stderr


def test_a_folder_of_recordings_is_a_test_suite(codemode, tmp_path):
    folder = tmp_path / "recordings"
    folder.mkdir()
    shutil.copy(EXAMPLE / "recording.jsonl", folder / "same.jsonl")
    unsealed(folder / "different.jsonl", ('"max_count":30', '"max_count":31'))
    (folder / "foreign.jsonl").write_text("{}\n")
    finished = codemode("replay", str(folder), "--junit", "replay.xml", "--json")
    assert finished.returncode == 2
    assert not finished.stderr.startswith("\n")
    results = {Path(one["name"]).name: one["result"] for one in json.loads(finished.stdout)}
    assert results == {"different.jsonl": "different", "foreign.jsonl": "unusable", "same.jsonl": "same"}
    suite = ET.fromstring((tmp_path / "replay.xml").read_text())  # noqa: S314  # our own file
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")


@pytest.mark.parametrize("command", [("replay", "--junit"), ("show", "--html")])
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere/file", "there is no folder nowhere"),
        ("nowhere/", "is the name of a folder; name a file in it"),
        (".", "is a directory; name a file in it"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(codemode, command, place, said):
    finished = codemode(command[0], str(EXAMPLE / "recording.jsonl"), command[1], place)
    assert finished.returncode == 2
    assert f"error: {place}: {said}\n" in finished.stderr


def test_an_edited_script_runs_on_the_recorded_answers_as_far_as_they_go(codemode, tmp_path):
    (tmp_path / "same.py").write_text(f"# edited\n{recorded_script()}")
    recording = str(EXAMPLE / "recording.jsonl")
    finished = codemode("replay", recording, "--script", "same.py")
    assert (finished.returncode, finished.stderr) == (0, "no differences\n")
    (tmp_path / "other.py").write_text(recorded_script().replace("# History of this", "# The history of this"))
    finished = codemode("replay", recording, "--script", "other.py")
    assert finished.returncode == 1
    assert "/arguments/content" in finished.stderr
    assert "filesystem.write_file is not answered by the recording with these arguments" in finished.stderr
    (tmp_path / "new.py").write_text("from tools import git\nawait git.git_status(repo_path='.')")
    finished = codemode("replay", recording, "--script", "new.py")
    assert finished.returncode == 1
    assert "the recording has no description of this tool; --live fetches it, and sends the call" in finished.stderr


FAILING = "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()\n"


@pytest.mark.parametrize("end", ["[][0]", "x = ("])
def test_an_edited_script_has_its_own_name_in_tracebacks_which_is_no_difference(codemode, tmp_path, end):
    (tmp_path / "old.py").write_text(FAILING + end)
    assert codemode("run", "old.py").returncode == 1
    (tmp_path / "new.py").write_text(FAILING + end)
    assert codemode("replay", "last", "--script", "new.py").stderr == "no differences\n"
    (tmp_path / "new.py").write_text(FAILING + "{}['key']")
    finished = codemode("replay", "last", "--script", "new.py")
    assert 'File \\"new.py\\", line 6' in finished.stderr
    assert finished.returncode == 1


def test_an_edited_script_that_sleeps_is_not_waited_for(codemode, tmp_path):
    (tmp_path / "slow.py").write_text(f"import asyncio\nawait asyncio.sleep(10_000)\n{recorded_script()}")
    patient = unsealed(tmp_path / "run.jsonl", ('"wall_seconds":30.0', '"wall_seconds":20000.0'))
    finished = codemode("replay", patient, "--script", "slow.py")
    assert (finished.returncode, finished.stderr) == (0, "no differences\n")


def test_another_image_is_no_news_until_something_is_different(codemode, tmp_path):
    image = json.loads((EXAMPLE / "recording.jsonl").read_text().splitlines()[2])["image"]
    other = (image, "0" * 64)
    name = unsealed(tmp_path / "run.jsonl", other)
    finished = codemode("replay", name)
    assert finished.returncode == 0
    assert "guest image" not in finished.stderr
    name = unsealed(tmp_path / "run.jsonl", other, ('"max_count":30', '"max_count":31'))
    finished = codemode("replay", name)
    assert finished.returncode == 1
    assert "it was recorded on another guest image, on which the script may have taken other steps" in finished.stderr


def test_another_policy_judges_the_recorded_calls(codemode, tmp_path):
    (tmp_path / "policy.json").write_text('{"rules": [{"tools": ["git.*"], "effect": "deny"}]}')
    recording = str(EXAMPLE / "recording.jsonl")
    finished = codemode("replay", recording, "--policy", "policy.json", "--json")
    assert finished.returncode == 1
    (verdicts,) = json.loads(finished.stdout).values()
    assert {one["name"]: one["now"] for one in verdicts}["git.git_show"] == "denied"
    assert {one["name"]: one["now"] for one in verdicts}["memory.read_graph"] == "allowed"


def test_what_another_policy_decides_can_be_read_in_a_narrow_terminal(codemode, tmp_path):
    (tmp_path / "policy.json").write_text('{"rules": [{"tools": ["git.*"], "effect": "deny"}]}')
    finished = codemode("replay", str(EXAMPLE / "recording.jsonl"), "--policy", "policy.json", COLUMNS="40")
    assert "\ngit.git_log\n  call 1  line " in finished.stderr
    assert "then allowed" in finished.stderr
    assert "…" not in finished.stderr


@pytest.mark.parametrize("is_whole", [True, False])
def test_names_of_files_in_a_folder_send_nothing_to_the_terminal(codemode, tmp_path, is_whole):
    (tmp_path / "runs").mkdir()
    recording = (EXAMPLE / "recording.jsonl").read_text()
    (tmp_path / "runs" / "a\x1b[2Jb\u202e.jsonl").write_text(recording if is_whole else "")
    (tmp_path / "policy.json").write_text('{"rules": [{"tools": "*", "effect": "allow"}]}')
    finished = codemode("replay", "runs", "--policy", "policy.json")
    assert finished.returncode == (0 if is_whole else 2)
    assert "runs/ab.jsonl" in finished.stderr
    assert set("\x1b\u202e").isdisjoint(finished.stdout + finished.stderr)


def test_another_policy_counts_the_recorded_calls_against_its_quotas(codemode, tmp_path):
    quotas = [{"tools": "git.git_show", "per_run": 1}, {"tools": "memory.create_entities", "per_minute": 2}]
    (tmp_path / "policy.json").write_text(json.dumps({"policy": {"quotas": quotas}}))
    finished = codemode("replay", str(EXAMPLE / "recording.jsonl"), "--policy", "policy.json", "--json")
    (verdicts,) = json.loads(finished.stdout).values()
    shown = [one["now"] for one in verdicts if one["name"] == "git.git_show"]
    created = [one["now"] for one in verdicts if one["name"] == "memory.create_entities"]
    assert shown == ["allowed", *["denied"] * (len(shown) - 1)]
    assert created == ["allowed", "allowed", *["denied"] * (len(created) - 2)]
    assert min(len(shown), len(created)) > 2


def test_a_policy_that_is_none_is_named_with_all_its_faults(codemode, tmp_path):
    (tmp_path / "policy.json").write_text('{"rules": {}, "quota": []}')
    finished = codemode("replay", str(EXAMPLE / "recording.jsonl"), "--policy", "policy.json")
    assert finished.returncode == 2
    assert "  - policy: rules: must be a list\n" in finished.stderr
    assert "  - policy: quota: is unknown; did you mean 'quotas'?\n" in finished.stderr


def test_a_policy_that_is_not_json_is_told_the_place_and_a_byte_order_mark_is_none_of_it(codemode, tmp_path):
    replay = ("replay", str(EXAMPLE / "recording.jsonl"), "--policy", "policy.json")
    (tmp_path / "policy.json").write_text('{"rules": []\n]')
    finished = codemode(*replay)
    assert finished.returncode == 2
    assert "policy.json:2:1: is not JSON: " in finished.stderr
    (tmp_path / "policy.json").write_text("{}", "utf-8-sig")
    assert "is no" not in codemode(*replay).stderr


def test_the_same_policy_decides_the_same_also_where_a_call_never_came_to_a_decision(codemode, config, tmp_path):
    script = (
        "from tools import odd\ntry:\n    await odd.echo(text=5)\nexcept Exception:\n    await odd.echo(text='x')\n"
    )
    (tmp_path / "script.py").write_text(script)
    codemode("run", "script.py", "-c", config, "--allow", "odd.*", "--check", "off")
    (tmp_path / "policy.json").write_text("{}")
    finished = codemode("replay", "last", "--policy", "policy.json", "--json")
    assert finished.returncode == 0, finished.stdout
    (verdicts,) = json.loads(finished.stdout).values()
    assert [(one["then"], one["now"]) for one in verdicts] == [("not sent", "allowed"), ("allowed", "allowed")]


def test_a_run_is_walked_through_step_by_step(codemode):
    finished = codemode("replay", str(EXAMPLE / "recording.jsonl"), "--step")
    assert finished.returncode == 0
    steps = finished.stdout.split("\nstep ")
    assert "▶   73     log = await git.git_log(repo_path=REPOSITORY, max_count=COMMITS)" in steps[0]
    assert '-> line 73: git.git_log {"repo_path": ".", "max_count": 30}' in steps[0]
    assert "<- git.git_log" in finished.stdout
    assert "history: 4 commits, 2 authors, 2 of the files they changed" in steps[-1]
    assert steps[-1].splitlines()[-2] == "  completed"


def test_a_live_replay_compares_with_the_servers_of_today(codemode, config, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    assert codemode("run", "script.py", "-c", config, "--allow", "odd.*").returncode == 0
    finished = codemode("replay", "last", "--live", "-c", config, "--allow", "odd.*")
    again, recorded = (entry["run_id"] for entry in json.loads(codemode("recordings", "list", "--json").stdout))
    named = f"{recorded} ran again as {again}, which `last` means from now on\n"
    assert (finished.returncode, finished.stderr) == (0, f"{named}no differences\n")
    refused = codemode("replay", "last", "--live", "-c", config)
    assert refused.returncode == 1
    assert "changed  line 3: odd.echo" in refused.stderr
    ignored = codemode("replay", "last", "--live", "-c", config, "--allow", "odd.*", "--ignore", "/result")
    assert ignored.returncode == 1, "the outcome and what was printed are still compared"
    all_three = [part for name in ("/result", "/outcome", "/printed") for part in ("--ignore", name)]
    assert codemode("replay", "last", "--live", "-c", config, "--allow", "odd.*", *all_three).returncode == 0


def test_a_parked_run_is_listed_with_what_it_waits_for_and_goes_on(codemode, config, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    parked = codemode("run", "script.py", "-c", config, "--park")
    assert parked.returncode == 4
    assert "parked: it waits for somebody to allow its calls; `codemode resume run_" in parked.stderr
    assert f" --config {config}` asks" in parked.stderr
    assert codemode("policy", "explain", "last").stdout.count("\tundecided\tnothing was decided: waiting\n") == 1
    runs = codemode("runs")
    assert "parked" in runs.stdout
    assert 'line 3: odd.echo {"text": "one"}: waits for somebody to allow it' in runs.stdout
    assert runs.stderr == "`codemode resume RUN` continues one; `codemode recordings rm RUN` removes it\n"
    still = codemode("resume", "last", "-c", config)
    assert (still.returncode, still.stdout) == (4, "")
    assert json.loads(codemode("runs", "--json").stdout)[0]["calls"] == 1
    resumed = codemode("resume", "last", "-c", config, "--allow", "odd.echo")
    assert (resumed.returncode, resumed.stdout) == (0, "one\ntwo\n")
    assert codemode("runs").stderr == "no run is open\n"
    again = codemode("resume", "last", "-c", config)
    assert again.returncode == 2
    assert "has ended: completed, so there is nothing to resume" in again.stderr


def test_a_parked_run_is_resumed_where_the_config_keeps_no_content_now(codemode, write_config, tmp_path, odd):
    (tmp_path / "script.py").write_text(SCRIPT)
    assert codemode("run", "script.py", "-c", write_config({"odd": odd}), "--park").returncode == 4
    config = write_config({"odd": odd}, recordings={"mode": "metadata"})
    resumed = codemode("resume", "last", "-c", config, "--allow", "odd.echo")
    assert (resumed.returncode, resumed.stdout) == (0, "one\ntwo\n")


def test_a_run_is_not_resumed_without_the_servers_of_its_script_and_stays_as_it_is(
    codemode, config, write_config, odd, tmp_path
):
    (tmp_path / "script.py").write_text(SCRIPT)
    assert codemode("run", "script.py", "-c", config, "--park").returncode == 4
    run = json.loads(codemode("runs", "--json").stdout)[0]["run_id"]
    missing = {"command": str(tmp_path / "gone")}
    needs = "odd, whose tools its script may call, is"
    for servers, said in (
        (
            {"other": odd},
            "server odd, whose tools its script may call, is not in the config. Resume it with the config",
        ),
        ({"odd": missing}, f"server {needs} down: the command '{tmp_path}/gone' was not found. Install it"),
        ({"odd": missing | {"lazy": True}}, f"server {needs} down: the command"),
        ({"odd": odd | {"disabled": True}}, f"server {needs} disabled. Take `disabled` out of its settings."),
    ):
        refused = codemode("resume", run, "-c", write_config(servers), "--allow", "odd.echo")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"error: {run} was not resumed: {said}" in refused.stderr
        assert json.loads(codemode("runs", "--json").stdout)[0]["state"] == "parked"
    resumed = codemode("resume", run, "-c", write_config({"odd": odd}), "--allow", "odd.echo")
    assert (resumed.returncode, resumed.stdout) == (0, "one\ntwo\n")


def test_a_run_with_a_call_of_unknown_outcome_says_how_it_goes_on_without_a_terminal(codemode, config, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    assert codemode("run", "script.py", "-c", config, "--allow", "odd.*").returncode == 0
    lines = codemode("recordings", "export", "last").stdout.splitlines(keepends=True)
    answered = next(number for number, line in enumerate(lines) if json.loads(line).get("event") == "answered")
    (tmp_path / "sent.jsonl").write_text("".join(lines[:answered]))
    assert codemode("recordings", "rm", "last").returncode == 0
    run = codemode("recordings", "import", "sent.jsonl").stderr.split(":")[0]
    parked = codemode("resume", run, "-c", config)
    options = f"{run} --unknown fail --config {config}` and `--unknown repeat` do not"
    assert (parked.returncode, parked.stdout) == (4, "")
    assert "parked: it waits for somebody to say whether a call of unknown outcome is sent again; " in parked.stderr
    assert options in parked.stderr
    failed = codemode("resume", run, "-c", config, "--unknown", "fail")
    assert failed.returncode == 1
    assert "ToolOutcomeUnknown" in failed.stderr


PARK = f"""
import asyncio, sys
from broker import Broker
from broker.store import Store

async def main():
    with Store.in_user_folder() as store:
        async with Broker.from_config(sys.argv[1], store=store) as broker:
            session = broker.session(principal="ada", name="hers", parks=True)
            print((await session.execute_code({SCRIPT!r}, describe_references=True)).outcome)

asyncio.run(main())
"""


def test_a_run_goes_on_under_the_rules_for_its_own_principal(codemode, environment, write_config, odd):
    rule = {"tools": "odd.echo", "principals": "ada", "sessions": "hers", "arguments": {"/text": {"equals": "two"}}}
    config = write_config({"odd": odd}, policy={"rules": [rule | {"effect": "deny"}]})
    command = [sys.executable, "-c", PARK, config]
    parked = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    assert parked.stdout == "parked\n"
    assert codemode("recordings", "export", "last", "-o", "run.jsonl").returncode == 0
    resumed = codemode("resume", "last", "-c", config, "--allow", "odd.echo")
    assert (resumed.returncode, resumed.stdout) == (4, "one\n")
    assert "odd.echo was refused by rule 1 of the policy." in resumed.stderr
    # What comes from elsewhere only says whose it is.
    assert codemode("recordings", "rm", "last").returncode == 0
    assert codemode("recordings", "import", "run.jsonl").returncode == 0
    imported = codemode("resume", "last", "-c", config, "--allow", "odd.echo")
    assert (imported.returncode, imported.stdout) == (0, "one\ntwo\n")


def test_recordings_leave_come_back_and_go(codemode, config, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    codemode("run", "script.py", "-c", config, "--allow", "odd.*")
    (entry,) = json.loads(codemode("recordings", "list", "--json").stdout)
    assert (entry["state"], entry["calls"], entry["filename"]) == ("completed", 2, "script.py")
    assert not {"id", "owner"} & entry.keys()
    assert codemode("recordings", "export", entry["run_id"][:9], "-o", "run.jsonl").returncode == 0
    assert codemode("recordings", "rm", "last").stderr == "removed 1\n"
    assert codemode("recordings", "list").stderr == "nothing is recorded yet\n"
    assert "2 calls, completed" in codemode("recordings", "import", "run.jsonl").stderr
    nowhere = codemode("recordings", "export", "last", "-o", "nowhere/run.jsonl")
    assert (nowhere.returncode, nowhere.stderr) == (2, "error: nowhere/run.jsonl: there is no folder nowhere\n")
    into = codemode("recordings", "export", "last", "-o", "nowhere/")
    assert (into.returncode, into.stderr) == (2, "error: nowhere/: there is no folder nowhere\n")
    assert codemode("replay", "last").returncode == 0
    assert codemode("recordings", "export", "last").stdout == (tmp_path / "run.jsonl").read_text()


def test_all_files_that_can_be_are_imported_whatever_the_others_are(codemode, tmp_path):
    (tmp_path / "other.jsonl").write_text("{}\n")
    for word in "ab":
        codemode("run", "-", stdin=repr(word))
        codemode("recordings", "export", "last", "-o", f"{word}.jsonl")
        assert codemode("recordings", "rm", "last").returncode == 0
    files = ("a.jsonl", "missing.jsonl", "other.jsonl", "a.jsonl", "b.jsonl")
    finished = codemode("recordings", "import", *files)
    assert finished.returncode == 2
    first, missing, other, again, last = finished.stderr.splitlines()
    assert [first[20:], last[20:]] == [": 0 calls, completed"] * 2
    assert missing.startswith("error: missing.jsonl")
    assert other == "error: other.jsonl: is not a recording (no line of it begins a codemode-recording)"
    assert again.startswith(f"error: {first[:20]} is recorded already")
    assert len(json.loads(codemode("recordings", "list", "--json").stdout)) == 2


def test_a_list_says_that_there_are_older_recordings(codemode):
    for _ in "ab":
        codemode("run", "-", stdin="1")
    short = codemode("recordings", "list", "-n", "1")
    assert len(short.stdout.splitlines()) == 1
    assert short.stderr == "there are older ones; `codemode recordings list -n 2` shows more\n"
    for enough in ("2", str(2**63), "9" * 40):
        assert codemode("recordings", "list", "-n", enough).stderr == ""
    assert len(json.loads(codemode("recordings", "list", "-n", "1", "--json").stdout)) == 1


def test_a_replay_names_commands_that_find_its_store(codemode, tmp_path):
    finished = codemode("replay", "last", CODEMODE_STORE=str(tmp_path / "mine.sqlite3"))
    assert f"`CODEMODE_STORE={tmp_path}/mine.sqlite3 codemode run`" in finished.stderr


def test_a_run_during_which_the_clock_was_set_back_took_no_negative_time(codemode, data_home):
    codemode("run", "-", stdin="1")
    with sqlite3.connect(f"{data_home}/codemode-broker/broker.sqlite3") as store:
        store.execute("UPDATE recording SET began = ended + 3600 * 1000000000, ran = NULL")
    store.close()
    assert codemode("recordings", "list").stdout.split("\t")[3:] == ["completed", "0", "0 ms\n"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay", "run_00"], "there is no recording 'run_00'; `codemode recordings list` has all."),
        (["replay", "missing.jsonl"], "missing.jsonl: no such file or directory"),
        (["replay", "."], "there is no recording in ."),
        (["recordings", "rm", "last"], "nothing is recorded yet; `codemode run` and `codemode serve` record."),
        (["show", "script.py", "--html", "page.html", "--json"], "--json has no effect with --html"),
        (["tools", "infer", "odd"], "Patterns are server.tool, as in 'git.*'"),
        (["recordings", "import", "script.py"], "script.py: is not a recording"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(codemode, tmp_path, arguments, said):
    (tmp_path / "script.py").write_text(SCRIPT)
    finished = codemode(*arguments)
    assert finished.returncode == 2
    assert said in finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_run_whose_first_step_differs_is_stepped_through_to_there(codemode, tmp_path):
    codemode("run", "-", stdin="print('one')")
    codemode("recordings", "export", "last", "-o", "run.jsonl")
    text = (tmp_path / "run.jsonl").read_text()
    (tmp_path / "run.jsonl").write_text(text[: text.rindex('{"event":"sealed"')].replace('"one\\n"', '"two\\n"'))
    finished = codemode("replay", "run.jsonl", "--step")
    assert (finished.returncode, finished.stderr) == (1, "")
    assert finished.stdout.splitlines()[0] == "the printed text of step 0 came out differently"
    assert finished.stdout.splitlines()[-2:] == ["-two", "+one"]


@pytest.mark.parametrize("options", [(), ("--step",), ("--script", "other.py")])
def test_what_a_file_says_was_called_and_printed_sends_nothing_to_the_terminal(codemode, config, tmp_path, options):
    (tmp_path / "other.py").write_text("print('other')\n")
    (tmp_path / "script.py").write_text("from tools import odd\nawait odd.echo(text='x')\nprint('said ', 'so')\n")
    assert codemode("run", "script.py", "-c", config, "--allow", "odd.*").returncode == 0
    codemode("recordings", "export", "last", "-o", "run.jsonl")
    lines = (tmp_path / "run.jsonl").read_text().splitlines()[:-1]
    attack = r"\u001b]0;owned\u0007\u001b[31m\u202e"
    changed = [line.replace("said  so", f"said  {attack}so") for line in lines]
    if "--script" in options:
        changed = [line.replace('"function":"odd.echo"', f'"function":"odd.{attack}echo"') for line in changed]
    (tmp_path / "run.jsonl").write_text("\n".join([*changed, ""]))
    finished = codemode("replay", "run.jsonl", *options)
    assert finished.returncode == 1
    assert "-said  so" in finished.stdout + finished.stderr
    assert set("\x1b\x07\u202e").isdisjoint(finished.stdout + finished.stderr)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--allow", "odd.*"], ["--allow has no effect here", "It belongs to --live."]),
        (["--ignore", "/result"], ["--ignore has no effect here", "It belongs to --live or --script."]),
        (["--live", "--junit", "x.xml"], ["--junit has no effect with --live", "Leave one of them out."]),
        (["--script", "x.py", "--allow", "*"], ["--allow has no effect with --script", "Leave one of them out."]),
        (
            ["--script", "x.py", "--policy", "x.json"],
            ["--script has no effect with --policy", "Leave one of them out."],
        ),
        (["--step", "--json"], ["--json has no effect with --step", "Leave one of them out."]),
        (
            ["--live", "--ignore", "result/at"],
            [
                "--ignore: 'result/at' is nothing that is compared",
                "Write /result/…, /arguments/…, /outcome/… or /printed.",
            ],
        ),
        (
            ["--live", "--ignore", "/at"],
            ["--ignore: '/at' is nothing that is compared", "Write /result/…, /arguments/…, /outcome/… or /printed."],
        ),
        (
            ["--live", "--ignore", "/results/at"],
            [
                "--ignore: '/results/at' is nothing that is compared",
                "Write /result/…, /arguments/…, /outcome/… or /printed.",
            ],
        ),
    ],
)
def test_an_option_that_would_be_without_effect_is_refused(codemode, options, said):
    finished = codemode("replay", str(EXAMPLE / "recording.jsonl"), *options)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert [line.strip().removeprefix("error: ") for line in finished.stderr.splitlines()] == said


@pytest.mark.parametrize("arguments", [["show"], ["show", "--html", "page.html"], ["replay"], ["replay", "--step"]])
def test_a_recording_that_turns_out_to_be_none_is_no_fault_of_ours(codemode, tmp_path, arguments):
    lines = (EXAMPLE / "recording.jsonl").read_text().splitlines()[:-1]
    (tmp_path / "run.jsonl").write_text("\n".join([*lines, ""]))
    assert codemode(*arguments, "run.jsonl").returncode == 0
    events = [json.loads(line) for line in lines]
    odd = [event | {"outcome": {"value": 5}} if event.get("outcome") else event for event in events]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in odd))
    finished = codemode(*arguments, "run.jsonl")
    assert (finished.returncode, "the outcome is none that there is" in finished.stderr) == (2, True), finished.stderr


def test_an_answer_that_a_file_hands_in_twice_is_stepped_through(codemode, config, tmp_path):
    script = "import asyncio\nfrom tools import odd\nawait asyncio.gather(odd.echo(text='a'), odd.echo(text='b'))\n1"
    assert codemode("run", "-", "-c", config, "--allow", "odd.*", stdin=script).returncode == 0
    codemode("recordings", "export", "last", "-o", "run.jsonl")
    events = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()[:-1]]
    steps = [event for event in events if event["event"] == "stepped"]
    handed_in = next(step["completions"] for step in steps if step["completions"])
    steps[-1]["completions"].append(handed_in[0])
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events))
    finished = codemode("replay", "run.jsonl", "--step")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.count("  <- odd.echo") == 3


def test_of_very_many_calls_in_flight_a_step_shows_the_first(codemode, config, tmp_path):
    script = "import asyncio\nfrom tools import odd\nawait asyncio.gather(*(odd.echo(text=str(n)) for n in range(50)))"
    (tmp_path / "many.py").write_text(script)
    assert codemode("run", "many.py", "-c", config, "--allow", "odd.echo").returncode == 0
    shown = codemode("replay", "last", "--step").stdout
    first = shown.split("step 1 of")[0]
    assert (first.count("-> line 3"), "-> and 30 more calls" in first) == (20, True), first
