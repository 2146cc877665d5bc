"""`codemode serve` as a process: over stdio and HTTP, until it is told to end."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

pytestmark = pytest.mark.anyio

TOKEN = "0123456789abcdef" * 2
WAIT = "from tools import odd\nprint('waiting')\nawait odd.echo(text='x')\nimport asyncio\nawait asyncio.sleep(60)"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
HINT = "other machines are refused until serve.allowed_hosts"
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The SDK's HTTP client leaves generators behind on trio."""
    return request.param


@pytest.fixture
def serving(command, environment, config, tmp_path):
    """Serve HTTP on a free port; yields the process and its URL."""

    @contextmanager
    def serve(*arguments: str, **more: str):
        process = subprocess.Popen(  # noqa: S603  # our own command
            [command, "serve", "--http", "127.0.0.1:0", "--config", config, "--allow", "odd.*", *arguments],
            env=environment | more,
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            assert process.stderr is not None
            try:
                lines = iter(process.stderr.readline, "")
                found = next(match for line in lines if (match := re.search(r"http://\S+", line)))
                yield process, found[0]
            finally:
                process.kill()

    return serve


@pytest.fixture
def configure(config):
    """Add sections to the config."""

    def add(sections) -> None:
        path = Path(config)
        path.write_text(json.dumps(json.loads(path.read_text()) | sections))

    return add


@pytest.fixture
def stdio(command, environment, config):
    return StdioServerParameters(command=command, args=["serve", "-c", config, "--allow", "odd.*"], env=environment)


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_client_works_over_stdio(stdio, mode):
    async with Client(stdio, mode=mode) as client:
        assert client.protocol_version == VERSIONS[mode]
        await client.call_tool("get_tool_details", {"tools": ["odd.echo"]})
        result = await client.call_tool("execute_code", {"code": "from tools import odd\nawait odd.echo(text='hi')"})
        assert "Connected: odd." in (client.instructions or "")
    assert result.structured_content["value"] == "hi"


SCRIPTS = {
    "completed": "print('out')\nimport sys\nprint('err', file=sys.stderr)\nawait odd.echo(text='hi')",
    "raised": "await odd.echo(text='hi')\n1 / 0",
    "stopped": "while True:\n    await odd.echo(text='hi')",
}
OF_A_REPLY = ["truncated", "session"]


@pytest.mark.parametrize("outcome", SCRIPTS)
async def test_the_structured_content_has_the_keys_of_run_json_and_those_that_the_docs_name(
    codemode, stdio, config, outcome
):
    code = f"from tools import odd\n{SCRIPTS[outcome]}"
    printed = json.loads(codemode("run", "-", "-c", config, "--allow", "odd.*", "--json", stdin=code).stdout)
    async with Client(stdio) as client:
        await client.call_tool("get_tool_details", {"tools": ["odd.echo"]})
        replied = (await client.call_tool("execute_code", {"code": code})).structured_content
    assert printed["outcome"] == replied["outcome"] == outcome
    assert sorted(replied) == sorted([*printed, *OF_A_REPLY])
    for key in ("error", "stopped", "usage"):
        assert keys(printed[key]) == keys(replied[key]), key
    assert keys(printed["calls"][0]) == keys(replied["calls"][0])
    documented = (Path(__file__).parents[3] / "docs" / "serving.md").read_text()
    told = documented.split("is the envelope of `codemode run --json`")[1].split("\n\n")[0]
    assert all(f"`{key}`" in told for key in OF_A_REPLY)


def keys(part):
    return part and list(part)


def spoken(*messages):
    return "".join(json.dumps(message) + "\n" for message in messages)


def test_stdout_holds_messages_alone_and_the_end_of_input_ends_it(codemode, config):
    finished = codemode("serve", "-c", config, stdin=spoken(INITIALIZE))
    [answer] = map(json.loads, finished.stdout.splitlines())
    assert finished.returncode == 0
    assert answer["result"]["serverInfo"]["name"] == "codemode-broker"


def test_files_as_standard_streams_are_read_and_written(command, environment, config, tmp_path):
    asked, answered = tmp_path / "asked.jsonl", tmp_path / "answered.jsonl"
    asked.write_text(spoken(INITIALIZE))
    with asked.open() as stdin, answered.open("w") as stdout:
        subprocess.run([command, "serve", "-c", config], env=environment, stdin=stdin, stdout=stdout, check=True)  # noqa: S603  # our own command
    [answer] = map(json.loads, answered.read_text().splitlines())
    assert answer["result"]["serverInfo"]["name"] == "codemode-broker"


def test_a_client_that_has_not_waited_for_its_probe_is_answered(codemode, config):
    envelope = {
        "protocolVersion": "2026-07-28",
        "clientInfo": {"name": "test", "version": "1"},
        "clientCapabilities": {},
    }
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in envelope.items()}
    probe = {"jsonrpc": "2.0", "id": "probe", "method": "server/discover", "params": {"_meta": meta}}
    finished = codemode("serve", "-c", config, stdin=spoken(probe, INITIALIZE))
    assert json.loads(finished.stdout.splitlines()[-1])["result"]["protocolVersion"] == "2025-11-25"


def test_lines_that_are_no_messages_do_not_end_it(codemode, config):
    finished = codemode("serve", "-c", config, stdin="hello\n{\n\x00\n" + spoken(INITIALIZE))
    assert json.loads(finished.stdout.splitlines()[-1])["result"]["protocolVersion"] == "2025-11-25"


NO_MESSAGES = {
    "no JSON": ("{", -32700, None),
    "a batch": ('[{"jsonrpc": "2.0", "id": 2, "method": "ping"}]', -32600, None),
    "parameters in a list": ('{"jsonrpc": "2.0", "id": 2, "method": "ping", "params": [1]}', -32600, 2),
    "an id that is a fraction": ('{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600, None),
    "an id that is true": ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, None),
    "an id that is null": ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
    "an id that is a list": ('{"jsonrpc": "2.0", "id": [1], "method": "ping"}', -32600, None),
    "no version": ('{"id": "two", "method": "ping"}', -32600, "two"),
}


@pytest.mark.parametrize("case", NO_MESSAGES)
def test_a_line_that_is_no_message_is_answered(codemode, config, case):
    line, code, number = NO_MESSAGES[case]
    finished = codemode("serve", "-c", config, stdin=f"\n{line}\n" + spoken(INITIALIZE))
    refused, initialized = map(json.loads, finished.stdout.splitlines())
    assert (refused["error"]["code"], refused["id"]) == (code, number)
    assert initialized["id"] == INITIALIZE["id"]


def test_what_may_be_an_answer_is_not_answered(codemode, config):
    finished = codemode("serve", "-c", config, stdin='{"jsonrpc": "2.0", "id": 1, "result": 5}\n' + spoken(INITIALIZE))
    [initialized] = map(json.loads, finished.stdout.splitlines())
    assert "result" in initialized


def test_a_notification_in_which_an_id_stands_all_the_same_is_not_answered(codemode, config):
    said = {"jsonrpc": "2.0", "id": None, "method": "notifications/initialized"}
    finished = codemode("serve", "-c", config, stdin=spoken(INITIALIZE, said))
    assert [json.loads(line)["id"] for line in finished.stdout.splitlines()] == [INITIALIZE["id"]]


def test_a_request_with_half_of_a_character_is_answered(codemode, config):
    """As of a client in JavaScript that has cut a text within an emoji."""
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping", "params": {"_meta": {"cut": "\ud83d"}}}
    finished = codemode("serve", "-c", config, stdin=spoken(INITIALIZE, ping))
    assert {"jsonrpc": "2.0", "id": 2, "result": {}} in map(json.loads, finished.stdout.splitlines())


@contextmanager
def initialized(command, environment, config):
    process = subprocess.Popen(  # noqa: S603  # our own command
        [command, "serve", "-c", config], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(spoken(INITIALIZE))
        process.stdin.flush()
        process.stdout.readline()
        yield process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_its_client_is_silent(command, environment, config, number):
    with initialized(command, environment, config) as process:
        process.send_signal(number)
        assert process.wait(timeout=20) == 0


def test_a_client_that_reads_no_more_ends_it(command, environment, config):
    with initialized(command, environment, config) as process:
        process.stdout.close()
        process.stdin.write(spoken({"jsonrpc": "2.0", "id": 2, "method": "ping"}))
        process.stdin.flush()
        assert process.wait(timeout=20) == 0


def test_a_client_that_goes_from_one_socket_for_both_streams_without_its_answer_ends_it(command, environment, config):
    """As under socat or systemd; its going is read as a reset."""
    client, ours = socket.socketpair()
    with client, ours:
        process = subprocess.Popen(  # noqa: S603  # our own command
            [command, "serve", "-c", config],
            env=environment,
            stdin=ours.fileno(),
            stdout=ours.fileno(),
            stderr=subprocess.PIPE,
            text=True,
        )
        ours.close()
        client.sendall(spoken(INITIALIZE).encode())
        client.recv(1)
    _, said = process.communicate(timeout=20)
    assert (process.returncode, said) == (0, "")


async def test_a_client_works_over_http(serving):
    with serving() as (_, url):
        for mode in ("auto", "legacy"):
            async with Client(url, mode=mode) as client:
                assert client.protocol_version == VERSIONS[mode]
                described = await client.call_tool("get_tool_details", {"tools": ["odd.echo"]})
                # Without a session of the transport the reply names one.
                named = re.search(r'session: \\?"(s_[0-9a-f]+)', described.model_dump_json())
                session = {"session": named[1]} if named else {}
                code = "from tools import odd\nawait odd.echo(text='hi')"
                result = await client.call_tool("execute_code", {"code": code, **session})
            assert bool(named) == (mode == "auto")
            assert result.structured_content["value"] == "hi", mode


async def test_a_principal_keeps_its_session_and_the_others_have_their_own(serving, configure):
    people: dict[Literal["auto", "legacy"], tuple[str, str]] = {"auto": ("ada", "bob"), "legacy": ("carol", "dan")}
    tokens = {name: f"{TOKEN}-{name}" for names in people.values() for name in names}
    configure({"serve": {"tokens": tokens}})
    code = {"code": "from tools import odd\nawait odd.echo(text='hi')"}

    async def results(url: str, token: str, mode: Literal["auto", "legacy"], *, describe: bool):
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            if describe:
                await client.call_tool("get_tool_details", {"tools": ["odd.echo"]})
            return await client.call_tool("execute_code", code)

    with serving() as (_, url):
        for mode, (one, other) in people.items():
            has_described = await results(url, tokens[one], mode, describe=True)
            has_not = await results(url, tokens[other], mode, describe=False)
            assert has_described.structured_content["value"] == "hi", mode
            assert has_not.structured_content["error"]["type"] == "ToolDescriptionRequired", mode


async def test_a_forged_session_header_of_the_older_era_names_no_session(serving):
    async def call(url: str, name: str, **arguments):
        async with (
            httpx2.AsyncClient(headers={"Mcp-Session-Id": "forged"}, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode="2026-07-28") as client,
        ):
            return await client.call_tool(name, arguments)

    with serving() as (_, url):
        await call(url, "get_tool_details", tools=["odd.echo"])
        result = await call(url, "execute_code", code="from tools import odd\nawait odd.echo(text='hi')")
    assert result.structured_content["error"]["type"] == "ToolDescriptionRequired"


async def test_without_its_token_nothing_is_answered_but_health(serving):
    with serving(CODEMODE_TOKEN=TOKEN) as (process, url):
        async with httpx2.AsyncClient(headers=ACCEPT, timeout=60) as http:
            refused = await http.post(url, json=INITIALIZE)
            wrong = await http.post(url, json=INITIALIZE, headers={"Authorization": f"Bearer {TOKEN[:-1]}"})
            right = await http.post(url, json=INITIALIZE, headers={"Authorization": f"Bearer {TOKEN}"})
            health = await http.get(url.replace("/mcp", "/health"))
        process.terminate()
        assert HINT not in process.stderr.read()
    assert (refused.status_code, wrong.status_code, right.status_code) == (401, 401, 200)
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})


async def test_a_proxy_is_told_not_to_buffer_and_finds_the_metadata_of_a_path_it_removes(serving, write_config, odd):
    oauth = {"issuer": "https://login.example.org", "resource": "https://codemode.example.org/tools/mcp"}
    write_config({"odd": odd}, serve={"oauth": oauth})
    with serving(CODEMODE_TOKEN=TOKEN) as (_, url):
        async with httpx2.AsyncClient(headers=ACCEPT, timeout=60) as http:
            streaming = await http.post(url, json=INITIALIZE, headers={"Authorization": f"Bearer {TOKEN}"})
            metadata = await http.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/tools/mcp"))
    assert streaming.headers["Content-Type"] == "text/event-stream"
    assert streaming.headers["X-Accel-Buffering"] == "no"
    assert metadata.json()["resource"] == oauth["resource"]


async def test_a_slash_at_the_end_of_the_address_leads_nowhere_else(serving):
    with serving(CODEMODE_TOKEN=TOKEN) as (_, url):
        async with httpx2.AsyncClient(headers=ACCEPT, timeout=60) as http:
            refused = await http.post(f"{url}/", json=INITIALIZE)
            right = await http.post(f"{url}/", json=INITIALIZE, headers={"Authorization": f"Bearer {TOKEN}"})
            elsewhere = await http.get(url.replace("/mcp", "/health/"))
    assert (refused.status_code, right.status_code, elsewhere.status_code) == (401, 200, 404)


@pytest.mark.parametrize("token", ["", "fifteen-letters"])
def test_a_token_of_the_environment_is_as_long_as_one_of_the_config(codemode, token):
    finished = codemode("serve", "--http", "127.0.0.1:0", CODEMODE_TOKEN=token)
    assert finished.returncode == 2
    assert f"CODEMODE_TOKEN holds {len(token)} characters, and a token has at least 16" in finished.stderr
    assert "`openssl rand -hex 16`" in finished.stderr
    assert token == "" or token not in finished.stderr


@pytest.mark.parametrize("token", [f"{TOKEN}\n", "\u00e9" * 16], ids=["with a line end", "not ASCII"])
def test_a_token_of_the_environment_is_one_that_clients_can_send(codemode, token):
    finished = codemode("serve", "--http", "127.0.0.1:0", CODEMODE_TOKEN=token)
    assert finished.returncode == 2
    assert "CODEMODE_TOKEN holds what no header can carry\n       A token is of printable ASCII" in finished.stderr
    assert token.strip() not in finished.stderr


def test_a_token_of_the_environment_replaces_none_of_the_config(codemode, write_config):
    config = write_config({}, serve={"tokens": {"default": "of-the-config-1234"}})
    finished = codemode("serve", "-c", config, "--http", "127.0.0.1:0", CODEMODE_TOKEN=TOKEN)
    assert finished.returncode == 2
    assert "serve.tokens in the config has another token for 'default'" in finished.stderr
    assert TOKEN not in finished.stderr


@pytest.mark.parametrize("name", ["ada", "default"])
async def test_the_config_may_say_whose_the_token_of_the_environment_is(serving, write_config, odd, name):
    write_config({"odd": odd}, serve={"tokens": {name: "${CODEMODE_TOKEN}"}})
    with serving(CODEMODE_TOKEN=TOKEN) as (_, url):
        async with httpx2.AsyncClient(headers=ACCEPT, timeout=60) as http:
            right = await http.post(url, json=INITIALIZE, headers={"Authorization": f"Bearer {TOKEN}"})
    assert right.status_code == 200


@pytest.mark.parametrize("option", ["--port=8000", "--host", "--bind", "-p"])
def test_an_address_in_two_options_is_said_to_be_one(codemode, option):
    finished = codemode("serve", option, "8000")
    assert finished.returncode == 2
    said = f"No such option: {option.partition('=')[0]}. Write host and port together, as in '--http 127.0.0.1:8000'."
    assert said in finished.stderr


def test_over_stdio_the_token_of_the_environment_means_nothing(codemode, config):
    finished = codemode("serve", "-c", config, stdin=spoken(INITIALIZE), CODEMODE_TOKEN=TOKEN[:5])
    assert finished.returncode == 0
    assert json.loads(finished.stdout)["result"]["serverInfo"]["name"] == "codemode-broker"


async def test_foreign_hosts_and_origins_and_a_request_over_the_bound_are_refused(serving):
    expected: list[tuple[dict[str, str], int]] = [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({}, 200),
    ]
    with serving() as (_, url):
        async with httpx2.AsyncClient(headers=ACCEPT, timeout=60) as http:
            for header, status in expected:
                answer = await http.post(url, json=INITIALIZE, headers=header)
                assert answer.status_code == status, header
            answer = await http.post(url, content=b"{" + b" " * 5_000_000)
            assert answer.status_code == 413


def test_an_address_that_others_can_reach_needs_authentication(codemode):
    finished = codemode("serve", "--http", "0.0.0.0:0")
    assert finished.returncode == 2
    assert "0.0.0.0 can be reached from other machines: set CODEMODE_TOKEN, serve.tokens or" in finished.stderr


async def test_who_serves_all_addresses_is_told_whom_that_reaches(serving):
    with serving("--http", "0.0.0.0:0", CODEMODE_TOKEN=TOKEN) as (process, _):
        assert HINT in process.stderr.readline()


async def test_a_token_of_the_config_needs_no_scope_of_the_authorization_server(serving, configure):
    oauth = {"issuer": "https://login.example", "resource": "https://broker.example/mcp", "scopes": ["codemode"]}
    configure({"serve": {"tokens": {"ada": TOKEN}, "oauth": oauth}})
    with serving() as (_, url):
        async with httpx2.AsyncClient(headers={**ACCEPT, "Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
            assert (await http.post(url, json=INITIALIZE)).status_code == 200
            assert (await http.get(url.replace("/mcp", "/api/v1/tools/hot"))).status_code == 200


def test_an_address_that_is_not_ours_is_told_from_a_port_in_use(codemode):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        in_use = codemode("serve", "--http", f"127.0.0.1:{taken.getsockname()[1]}")
    elsewhere = codemode("serve", "--http", "192.0.2.1:8000", CODEMODE_TOKEN=TOKEN)
    assert "Address already in use\n       Choose another port" in in_use.stderr
    assert "Cannot assign requested address\n       Give an address of this machine" in elsewhere.stderr


@pytest.mark.parametrize("address", ["here", "http://localhost:8000", "127.0.0.1:port", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_named(codemode, address):
    finished = codemode("serve", "--http", address)
    assert finished.returncode == 2
    assert f"--http: '{address}' is not HOST:PORT, as in 127.0.0.1:8000" in finished.stderr


async def test_a_run_is_stopped_with_its_outcome_when_the_server_ends(serving, configure):
    configure({"serve": {"grace_seconds": 0.2}})
    with serving() as (process, url):

        async def end(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001  # as called
            process.send_signal(signal.SIGTERM)

        async with Client(url, mode="legacy") as client:
            await client.call_tool("get_tool_details", {"tools": ["odd.echo"]})
            result = await client.call_tool("execute_code", {"code": WAIT}, progress_callback=end)
        assert process.wait(timeout=20) == 0
    assert result.structured_content["stopped"]["limit"] == "shutdown"
    assert result.structured_content["stdout"] == "waiting\n"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_person_behind_the_client_is_asked_over_stdio(command, environment, config, mode):
    forms = []

    async def person(_ctx, params):
        forms.append(params.message)
        return ElicitResult(action="accept", content={"tool_1": "allow these calls"})

    server = StdioServerParameters(command=command, args=["serve", "--config", config], env=environment)
    async with Client(server, mode=mode, elicitation_callback=person) as client:
        first = await client.call_tool("get_tool_details", {"tools": ["odd.echo"]})
        assert not first.is_error
        code = "from tools import odd\nprint(await odd.echo(text='asked'))"
        result = await client.call_tool("execute_code", {"code": code})
    assert result.structured_content is not None
    assert result.structured_content["stdout"] == "asked\n"
    assert forms == ['A script wants to call tools:\n1. odd.echo: 1 call\n   text="asked"']
