"""OAuth as it is used: a real authorization server in a process of its own, the command line, a keyring, restarts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest

from broker import Broker, Config, ExecutionResult, Grant

pytestmark = pytest.mark.anyio

CODEMODE = str(Path(sys.executable).with_name("codemode"))
ROOT = Path(__file__).parents[3]
SERVERS = Path(__file__).parents[1] / "servers"
SCRIPT = "from tools import web\nprint(await web.tell())\n"
TOLD = "[redacted] [redacted]\n"


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def issuer():
    """The address of an authorization server with an MCP server behind it."""
    command = [sys.executable, "-m", "tests.broker.servers.oauth_server"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # ours
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.fixture
def keyring_file(tmp_path, monkeypatch):
    """A keyring for this process and those that it starts."""
    path = tmp_path / "keyring.json"
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "file_keyring.FileKeyring")
    monkeypatch.setenv("FILE_KEYRING", str(path))
    monkeypatch.setenv("PYTHONPATH", str(SERVERS))
    monkeypatch.syspath_prepend(str(SERVERS))
    import keyring  # noqa: PLC0415

    keyring.core.init_backend()
    yield path
    monkeypatch.undo()
    keyring.core.init_backend()


@pytest.fixture
def environment(tmp_path, monkeypatch, data_home):
    """No user's config; tokens that go to no keyring go below the data folder of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CODEMODE_STORE", str(tmp_path / "store.sqlite3"))
    return data_home


@pytest.fixture
def config(issuer, tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"web": {"url": f"{issuer}/mcp", "oauth": {}}}}))
    return path


def codemode(*arguments, stdin=""):
    return subprocess.run(  # noqa: S603  # our own command
        [CODEMODE, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


def log_in(config):
    """Run `codemode mcp login`, and be the browser that it sends somebody to."""
    command = [CODEMODE, "mcp", "login", "web", "-c", str(config), "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603  # our own command
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.search(r"http://\S+", line)
        assert match is not None, line
        httpx2.get(match[0], follow_redirects=True, timeout=60)
        said = process.stderr.read()
    assert process.returncode == 0
    assert re.fullmatch(
        rf"logged in to web; `.*codemode mcp logout web --config {re.escape(str(config))}` forgets it\n", said
    )


def run(config):
    return codemode("run", "-", "-c", config, "--allow", "web.tell", stdin=SCRIPT)


def log_of(issuer):
    return httpx2.get(f"{issuer}/log", timeout=60).json()


@pytest.mark.usefixtures("environment")
def test_one_login_lasts_over_restarts_and_expiry_until_logout(issuer, config, keyring_file):
    assert "it wants a login" in run(config).stderr
    log_in(config)
    [kept] = json.loads(keyring_file.read_text()).values()
    tokens = json.loads(kept)["tokens"]
    assert run(config).stdout == TOLD
    httpx2.post(f"{issuer}/expire", timeout=60)
    again = run(config)
    assert again.stdout == TOLD, again.stderr
    [kept] = json.loads(keyring_file.read_text()).values()
    renewed = json.loads(kept)["tokens"]
    assert {renewed["access_token"], renewed["refresh_token"]}.isdisjoint(
        {tokens["access_token"], tokens["refresh_token"]}
    )
    assert run(config).stdout == TOLD
    assert log_of(issuer) == ["register", "code", "refresh"]
    out = codemode("mcp", "logout", "web", "-c", config)
    assert out.stderr == "logged out of web: its tokens are forgotten here; the server may still accept them\n"
    assert json.loads(keyring_file.read_text()) == {}
    assert codemode("mcp", "logout", "web", "-c", config).stderr == "nobody was logged in to web\n"
    assert "it wants a login" in run(config).stderr


@pytest.mark.usefixtures("environment", "keyring_file")
def test_tokens_that_cannot_be_refreshed_any_more_want_a_login(issuer, config):
    log_in(config)
    httpx2.post(f"{issuer}/revoke", timeout=60)
    refused = run(config)
    assert "it wants a login" in refused.stderr
    assert "codemode mcp login" in refused.stderr
    assert refused.returncode != 0
    log_in(config)
    assert run(config).stdout == TOLD


@pytest.mark.usefixtures("environment", "keyring_file")
async def test_tokens_are_refreshed_while_the_broker_runs(issuer, config):
    await anyio.to_thread.run_sync(log_in, config)
    with anyio.fail_after(60):
        async with Broker(Config.load(config), startup_seconds=30) as broker:
            session = broker.session(grants=[Grant("web.tell")])
            for _ in range(2):
                result = await session.execute_code(SCRIPT, describe_references=True)
                assert result.stdout == TOLD, result
                async with httpx2.AsyncClient(timeout=60) as client:
                    await client.post(f"{issuer}/expire")
    assert log_of(issuer)[:3] == ["register", "code", "refresh"]


@pytest.mark.usefixtures("environment", "keyring_file")
async def test_brokers_that_share_a_login_refresh_it_once(issuer, config):
    await anyio.to_thread.run_sync(log_in, config)
    results: list[ExecutionResult] = []

    async def call(broker: Broker) -> None:
        session = broker.session(grants=[Grant("web.tell")])
        results.append(await session.execute_code(SCRIPT, describe_references=True))

    loaded = Config.load(config)
    with anyio.fail_after(60):
        async with Broker(loaded, startup_seconds=30) as one, Broker(loaded, startup_seconds=30) as other:
            async with httpx2.AsyncClient(timeout=60) as client, anyio.create_task_group() as tasks:
                await client.post(f"{issuer}/expire")
                tasks.start_soon(call, one)
                tasks.start_soon(call, other)
            log = await anyio.to_thread.run_sync(log_of, issuer)
    assert [result.stdout for result in results] == [TOLD, TOLD], results
    assert log == ["register", "code", "refresh"]


@pytest.mark.usefixtures("environment", "keyring_file")
async def test_a_call_that_a_server_refuses_for_its_token_was_not_executed(issuer, config):
    await anyio.to_thread.run_sync(log_in, config)
    with anyio.fail_after(60):
        async with Broker(Config.load(config), startup_seconds=30) as broker:
            session = broker.session(grants=[Grant("web.tell")])
            assert (await session.execute_code(SCRIPT, describe_references=True)).stdout == TOLD
            async with httpx2.AsyncClient(timeout=60) as client:
                await client.post(f"{issuer}/revoke")
            refused = await session.execute_code(SCRIPT, describe_references=True)
    assert [call.status for call in refused.calls] == ["unavailable"]
    assert refused.error is not None
    assert refused.error.message == (
        "web is not available: it refused the call with HTTP 401. The operator has to log in or correct its "
        "credentials. Nothing was executed."
    )


@asynccontextmanager
async def account(issuer, tmp_path, secret="robot-secret-1", name="robot", **more):  # noqa: S107  # of the test
    oauth = {"grant": "client_credentials", "client_id": name, "client_secret": "env://ROBOT", "issuer": issuer, **more}
    text = json.dumps({"mcpServers": {"web": {"url": f"{issuer}/mcp", "oauth": oauth}}})
    config = Config.parse(text, source="c", folder=tmp_path, environment={"ROBOT": secret})
    with anyio.fail_after(60):
        async with Broker(config, startup_seconds=30) as broker:
            yield broker


@pytest.mark.usefixtures("environment", "keyring_file")
async def test_an_account_of_the_broker_gets_tokens_by_itself(issuer, tmp_path):
    async with account(issuer, tmp_path) as broker:
        session = broker.session(grants=[Grant("web.tell")])
        first = await session.execute_code(SCRIPT, describe_references=True)
        async with httpx2.AsyncClient(timeout=60) as client:
            await client.post(f"{issuer}/expire")
        second = await session.execute_code(SCRIPT, describe_references=True)
    assert (first.stdout, second.stdout) == ("[redacted]\n", "[redacted]\n")
    assert set(log_of(issuer)) == {"client_credentials"}


@pytest.mark.usefixtures("environment", "keyring_file")
async def test_a_wrong_secret_of_the_account_is_said_and_not_shown(issuer, tmp_path):
    async with account(issuer, tmp_path, "wrong-secret-9") as broker:
        status = broker.server_statuses()[0]
    assert status.state == "down"
    assert status.problem == "the authorization server did not accept the account"
    assert "client_id" in (status.what_to_do or "")


@pytest.mark.usefixtures("environment", "keyring_file")
async def test_an_account_is_given_no_token_of_another_one(issuer, tmp_path):
    problems = []
    for name in ("robot", "another", "robot"):
        async with account(issuer, tmp_path, name=name) as broker:
            problems.append(broker.server_statuses()[0].problem)
    assert problems == [None, "the authorization server did not accept the account", None]
    assert log_of(issuer) == ["client_credentials"]


@pytest.mark.usefixtures("environment", "keyring_file")
async def test_an_account_asks_for_the_scopes_of_the_config_and_no_others(issuer, tmp_path):
    for scopes in (["read", "write"], ["read"]):
        async with account(issuer, tmp_path, scopes=scopes) as broker:
            assert broker.server_statuses()[0].problem is None
    assert log_of(issuer) == ["client_credentials read write", "client_credentials read"]


MISUSED = {
    "no such server": (["mcp", "login", "mail"], "the config has no server 'mail'"),
    "no oauth": (["mcp", "logout", "plain"], "plain has no 'oauth' in the config"),
    "an account": (["mcp", "login", "robot"], "nobody logs in to robot: the broker has an account of its own there"),
}


@pytest.mark.parametrize("case", MISUSED)
def test_a_login_that_makes_no_sense_is_explained(tmp_path, case):
    arguments, said = MISUSED[case]
    oauth = {"grant": "client_credentials", "client_id": "r", "client_secret": "s" * 8, "issuer": "https://a.example"}
    path = tmp_path / "mcp.json"
    servers = {"plain": {"command": "x"}, "robot": {"url": "https://a.example/mcp", "oauth": oauth}}
    path.write_text(json.dumps({"mcpServers": servers}))
    finished = codemode(*arguments, "-c", path)
    assert (finished.returncode, said in finished.stderr) == (2, True), finished.stderr
