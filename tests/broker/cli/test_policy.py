"""`codemode policy` and `codemode audit`, as a person types them."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from typing import Any

import pytest

from broker import Grant
from broker.authorization.kept_grants import KeptGrants
from broker.authorization.predicates import Predicate
from broker.store import Store
from codegen import ToolAnnotations, ToolSpec

ECHO = "from tools import odd\nprint(await odd.echo(text='hi'))"


@pytest.fixture
def governed(tmp_path, odd):
    """A config with a policy about the server `odd`."""
    policy = {
        "rules": [
            {"name": "short", "tools": "odd.echo", "arguments": {"/text": {"in": ["hi"]}}, "effect": "allow"},
            {"tools": "odd.die", "effect": "deny", "reason": "it ends the server"},
        ],
    }
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"odd": {**odd, "labels": ["egress"]}}, "policy": policy}))
    return str(path)


TESTS = {
    "a rule": (["--call", "odd.echo", "--args", '{"text": "hi"}'], 0, "allow (rule 1 'short')"),
    "no rule": (
        ["--call", "odd.echo", "--args", '{"text": "no"}'],
        4,
        "ask (the default 'everything else': no rule says otherwise)",
    ),
    "denied": (["--call", "odd.die"], 4, "deny (rule 2: it ends the server)"),
    "a grant": (["--call", "odd.fail", "--allow", "odd.*"], 0, "allow (grant g1 odd.*)"),
    "the model": (
        ["--call", "@model.extract"],
        4,
        "ask (the default 'everything else': no rule says otherwise)",
    ),
    "the model, granted": (
        ["--call", "@model.extract", "--allow", "@model.extract"],
        0,
        "allow (grant g1 @model.extract)",
    ),
    "a flow": (
        ["--call", "odd.echo", "--args", '{"text": "hi"}', "--after", "private"],
        4,
        "ask (flow after private from earlier.call (1 call), to egress: private data could leave)",
    ),
}


@pytest.mark.parametrize("case", TESTS)
def test_test_says_what_would_be_decided_and_why(codemode, governed, case):
    options, code, text = TESTS[case]
    finished = codemode("policy", "test", "-c", governed, *options)
    assert (finished.returncode, finished.stdout, finished.stderr) == (code, f"{text}\n", "")


def test_test_of_a_tool_that_is_not_there_says_so_and_decides(codemode, governed):
    finished = codemode("policy", "test", "-c", governed, "--call", "odd.nope", "--json")
    assert json.loads(finished.stdout)["decision"] == "ask"
    assert "odd has no such tool" in finished.stderr
    near = codemode("policy", "test", "-c", governed, "--call", "odd.ecko")
    assert near.stderr.endswith("decided without what the server says of the tool; did you mean 'echo'?\n")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"txt": "hi"}, "'text' is a required property; it has no parameter 'txt' (it takes: text)"),
        ({"text": "hi", "zzz": 1}, "it has no parameter 'zzz' (it takes: text)"),
        ({"text": 5}, "text: 5 is not of type 'string'. Write str(...) around it"),
    ],
)
def test_test_says_of_arguments_that_the_tool_does_not_take_that_such_a_call_fails(codemode, governed, args, said):
    finished = codemode("policy", "test", "-c", governed, "--call", "odd.echo", "--args", json.dumps(args))
    told = f"odd.echo does not take these arguments: {said}; a call like that fails, whatever is decided here"
    assert finished.stderr == f"note: {told}\n"
    assert finished.stdout.startswith(("ask", "allow"))


def test_test_names_a_grant_for_a_server_that_is_not_there(codemode, governed):
    finished = codemode("policy", "test", "-c", governed, "--call", "odd.fail", "--allow", "od.*")
    assert (finished.returncode, finished.stderr) == (4, "--allow od.*: the config has no server 'od'; it has odd\n")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--call", "odd"], "names no tool"),
        (["--call", "nope.x"], "the config has no server 'nope'"),
        (["--call", "odd.echo", "--args", "[1]"], "--args: not a JSON object"),
        (
            ["--call", "odd.echo", "--after", "privat"],
            "--after: no server and no flow has the label 'privat'; did you mean 'private'?",
        ),
        (["--call", "odd.echo", "--after", "xyz"], "There are egress, private, untrusted."),
    ],
)
def test_wrong_usage_of_test_is_explained(codemode, governed, options, part):
    finished = codemode("policy", "test", "-c", governed, *options)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert part in finished.stderr


def test_the_schema_is_printed(codemode):
    finished = codemode("policy", "schema")
    assert finished.returncode == 0
    assert "rules" in json.loads(finished.stdout)["properties"]


def test_a_policy_allows_and_refuses_without_anybody_to_ask(codemode, governed):
    assert codemode("run", "-", "-c", governed, stdin=ECHO).stdout == "hi\n"
    refused = codemode("run", "-", "-c", governed, "--allow", "*", stdin="from tools import odd\nawait odd.die()")
    assert refused.returncode == 4
    assert "odd.die was refused by rule 2 of the policy: it ends the server." in refused.stderr


def test_a_wrong_policy_is_named_with_file_rule_and_field(codemode, tmp_path):
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}, "policy": {"rules": [{"tools": "*", "effect": "yes"}]}}')
    finished = codemode("run", "-", "-c", "mcp.json", stdin="1")
    assert (finished.returncode, finished.stderr) == (
        2,
        "error: mcp.json: policy: rule 1: effect: must be 'allow', 'ask' or 'deny'\n",
    )


def test_a_run_is_explained_and_audited(codemode, governed):
    script = f"{ECHO}\ntry: await odd.die()\nexcept PermissionError: pass"
    run_id = json.loads(codemode("run", "-", "-c", governed, "--json", stdin=script).stdout)["run_id"]
    explained = codemode("policy", "explain", run_id)
    assert explained.returncode == 0
    assert "\trule 1 'short'" in explained.stdout
    assert "it ends the server" in explained.stdout
    assert codemode("policy", "explain", "last").stdout == explained.stdout
    lines = [json.loads(line) for line in codemode("audit", "--run", run_id, "--json").stdout.splitlines()]
    assert [(line["kind"], line.get("tool"), line.get("decision")) for line in lines] == [
        ("attempt", "echo", "allowed"),
        ("result", None, None),
        ("attempt", "die", "denied"),
    ]
    assert codemode("audit", "--run", "last").stdout == codemode("audit", "--run", run_id[:-2]).stdout != ""
    table = codemode("audit", "--since", "1h").stdout
    assert table.count("odd.") == 2
    assert codemode("audit", "--since", "2999-01-01").stderr == "no call like that is on record\n"
    filtered = codemode("audit", "--verify", "--server", "odd")
    assert (filtered.returncode, "--server has no effect with --verify" in filtered.stderr) == (2, True)
    verified = codemode("audit", "--verify")
    assert verified.stdout == f"ok: 3 records in one unbroken chain; the last hash is {lines[-1]['hash']}\n"


def test_a_record_that_was_changed_is_left_out_of_a_list(codemode, governed, data_home):
    codemode("run", "-", "-c", governed, stdin=f"{ECHO}\n{ECHO}")
    assert codemode("audit").stdout.count("odd.echo") == 2
    edit_attempt(data_home, {"status": None})
    for command in (["audit"], ["policy", "explain", "last"]):
        finished = codemode(*command)
        assert (finished.returncode, finished.stdout.count("odd.echo")) == (0, 1)
        assert finished.stderr == "1 record left out that somebody has changed; see `codemode audit --verify`\n"


def test_a_changed_record_sends_nothing_to_the_terminal(codemode, governed, data_home):
    run_id = json.loads(codemode("run", "-", "-c", governed, "--json", stdin=ECHO).stdout)["run_id"]
    attack = "\x1b]0;owned\x07\u202e"
    edit_attempt(data_home, dict.fromkeys(("run", "server", "tool", "status", "arguments", "principal"), attack))
    shown = codemode("audit")
    assert (shown.returncode, shown.stderr, run_id in shown.stdout) == (0, "", False)
    assert shown.stdout.rstrip().isascii()
    assert set("\x1b\x07").isdisjoint(shown.stdout)


def edit_attempt(data_home, changed):
    """Change the first attempt in the user's store behind the back of codemode."""
    with sqlite3.connect(f"{data_home}/codemode-broker/broker.sqlite3") as store:
        store.execute("DROP TRIGGER audit_no_update")
        [text] = store.execute("SELECT record FROM audit WHERE number = 1").fetchone()
        store.execute("UPDATE audit SET record = ? WHERE number = 1", (json.dumps(json.loads(text) | changed),))
    store.close()


def test_a_time_is_shown_as_it_is_on_the_clock_here_and_as_since_takes_it(codemode, governed):
    codemode("run", "-", "-c", governed, stdin=ECHO)
    here = {"TZ": "XYZ-9"}
    (row,) = codemode("audit", **here).stdout.splitlines()
    shown = row.split("\t")[0]
    attempt = json.loads(codemode("audit", "--json").stdout.splitlines()[0])
    assert datetime.fromisoformat(f"{shown}+09:00") == datetime.fromisoformat(attempt["time"]).replace(microsecond=0)
    assert codemode("audit", "--since", shown, **here).stdout.splitlines() == [row]


def test_what_is_not_on_record_is_explained(codemode, governed):
    assert "nothing was recorded yet" in codemode("audit").stderr
    codemode("run", "-", "-c", governed, stdin=ECHO)
    unknown = codemode("policy", "explain", "run_none")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "no call of 'run_none' is on record" in unknown.stderr
    for since in ("yesterday", "999999d", "0001-01-01"):
        assert f"--since: '{since}' is not a time" in codemode("audit", "--since", since, TZ="XYZ-9").stderr


@pytest.mark.parametrize("command", [("policy", "explain"), ("audit", "--run")])
def test_a_beginning_that_several_runs_share_is_not_said_to_have_no_calls(codemode, governed, data_home, command):
    codemode("run", "-", "-c", governed, stdin=ECHO)
    codemode("run", "-", "-c", governed, stdin=ECHO)
    with sqlite3.connect(f"{data_home}/codemode-broker/broker.sqlite3") as store:
        store.execute("UPDATE recording SET run_id = 'run_0' || substr(run_id, 6)")
        these = ", ".join(name for (name,) in store.execute("SELECT run_id FROM recording ORDER BY run_id"))
    store.close()
    finished = codemode(*command, "run_0")
    said = f"error: several recordings begin with 'run_0', such as {these}; give more of the id.\n"
    assert (finished.returncode, finished.stdout, finished.stderr) == (2, "", said)


def test_a_store_that_cannot_be_used_is_named_before_anything_runs(codemode, governed, tmp_path):
    (tmp_path / "broken").write_text("something else " * 100)
    finished = codemode("run", "-", "-c", governed, stdin="print(1)", CODEMODE_STORE=str(tmp_path / "broken"))
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "it is not a database of codemode" in finished.stderr


@pytest.mark.parametrize("command", [("audit",), ("audit", "prune", "--keep", "1"), ("grants", "list")])
def test_a_store_of_a_newer_version_is_no_fault_of_ours(codemode, governed, tmp_path, command):
    own = {"CODEMODE_STORE": str(tmp_path / "own.sqlite3")}
    codemode("run", "-", "-c", governed, stdin="print(1)", **own)
    assert codemode(*command, **own).returncode == 0
    with Store(tmp_path / "own.sqlite3") as store:
        store.execute("UPDATE component SET version = 99")
    finished = codemode(*command, **own)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "was made by a newer codemode (version 99" in finished.stderr


def test_grants_are_listed_and_revoked(codemode, governed, tmp_path):
    nothing = codemode("grants", "list")
    assert (nothing.returncode, nothing.stderr) == (0, "nothing is allowed permanently\n")
    codemode("run", "-", "-c", governed, stdin=ECHO, CODEMODE_STORE=str(tmp_path / "own.sqlite3"))
    own = {"CODEMODE_STORE": str(tmp_path / "own.sqlite3")}
    assert codemode("grants", "list", **own).stderr == "nothing is allowed permanently\n"
    spec = ToolSpec("odd", "echo", None, "Says it.", {"type": "object"}, None, ToolAnnotations())
    bounds: dict[str, Any] = {
        "calls": 3,
        "expires_at": datetime(2030, 1, 2, tzinfo=UTC),
        "after": frozenset({"secret", "mail"}),
    }
    grant = Grant("odd.echo", spec.digest, Predicate.parse({"/text": {"equals": "a"}}), scope="always", **bounds)
    with Store(tmp_path / "own.sqlite3") as store:
        grant_id = KeptGrants(store).keep(grant, spec, principal="ada", by="terminal")
    [listed] = codemode("grants", "list", **own).stdout.splitlines()
    assert listed.split("\t")[:5] == [
        grant_id, "odd.echo", '{"/text":{"equals":"a"}}',
        "3 calls; until 2030-01-02 00:00 UTC; also after mail, secret", "ada",
    ]  # fmt: skip
    [document] = json.loads(codemode("grants", "list", "--json", **own).stdout)
    assert {key: value for key, value in document.items() if key != "given_at"} == {
        "id": grant_id,
        "tool": "odd.echo",
        "digest": spec.digest,
        "arguments": {"/text": {"equals": "a"}},
        "calls": 3,
        "expires_at": "2030-01-02T00:00:00+00:00",
        "after": ["mail", "secret"],
        "principal": "ada",
        "by": "terminal",
    }
    with Store(tmp_path / "own.sqlite3") as store:
        store.execute("UPDATE kept_grant SET principal = ?, given_by = ?", ("\x1b[31m", "\u202e"))
    assert codemode("grants", "list", **own).stdout.split("\t")[4::2] == ["\\x1b[31m", "\\u202e\n"]
    assert codemode("grants", "revoke", grant_id, **own).returncode == 0
    gone = codemode("grants", "revoke", grant_id, **own)
    assert (gone.returncode, f"there is no grant {grant_id}" in gone.stderr) == (2, True)


def test_allow_takes_tests_on_the_arguments(codemode, config):
    script = "from tools import odd\nprint(await odd.echo(text='note 1'))\nawait odd.echo(text='other')"
    allow = 'odd.echo {"/text": {"glob": "note *"}}'
    finished = codemode("run", "-", "-c", config, "--allow", allow, stdin=script)
    assert (finished.returncode, finished.stdout) == (4, "note 1\n")
    broken = codemode("run", "-", "-c", config, "--allow", "odd.echo {nonsense", stdin=script)
    assert (broken.returncode, "is not a JSON object" in broken.stderr) == (2, True)


def test_the_audit_is_pruned_and_says_so(codemode, config):
    for _ in range(2):
        codemode(
            "run", "-", "-c", config, "--allow", "odd.echo", stdin="from tools import odd\nawait odd.echo(text='x')"
        )
    assert "nothing says which records to remove" in codemode("audit", "prune").stderr
    both = codemode("audit", "prune", "--older-than", "1d", "--keep", "1")
    assert (both.returncode, "both say which records to remove" in both.stderr) == (2, True)
    assert codemode("audit", "prune", "--older-than", "1d").stderr.startswith("0 records removed")
    assert codemode("audit", "prune", "--keep", "1").stderr.startswith("3 records removed")
    verified = codemode("audit", "--verify")
    assert (verified.returncode, ", after 3 that were pruned, last on 2" in verified.stdout) == (0, True), verified
