"""Scripts that attack calls, those of the corpus and more, through a whole broker with a policy, each with its control.

`good` and `notes` are allowed, `mail` is allowed and takes what leaves, `vault` is denied. For every script: how it
ends, what the audit says of its calls, and what reached the servers; nothing shows the canary. The control does with
leave what the attack tried without.
"""

from __future__ import annotations

import secrets
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from broker import Broker, Config, PolicyConfig
from broker.audit.chain import entries, verify
from broker.store import Store
from sandbox import Limits

from .corpus import ADAPTER, INJECTED, read_corpus

pytestmark = pytest.mark.anyio

SCRIPTS = {name: script for name, script in read_corpus().items() if name.startswith("br_")}
POLICY = PolicyConfig.model_validate(
    {
        "rules": [
            {"name": "closed", "tools": "vault.*", "effect": "deny", "reason": "the vault stays closed"},
            {"tools": ["good.*", "notes.*", "mail.*"], "effect": "allow"},
        ]
    }
)
LABELS = {"notes": ("private",), "mail": ("egress",)}
CALLS = 200
ECHO = "await H.call('good', 'echo', {'text': 'x'})"
SEND = "await H.call('mail', 'send', {'to': 'us@ours.example', 'body': 'hello'})"


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def canary():
    return f"hostile-canary-{secrets.token_hex(16)}"


@pytest.fixture
def reached():
    """What reached a server, in its own words."""
    return []


@pytest.fixture
def servers(canary, reached):
    good, vault, mail, notes = (MCPServer(name) for name in ("good", "vault", "mail", "notes"))

    @good.tool(structured_output=False)
    def echo(text: str) -> str:
        reached.append("good.echo")
        return text

    @good.tool(structured_output=False)
    def inject() -> str:
        reached.append("good.inject")
        return str(INJECTED)

    @good.tool()
    def fail(msg: str) -> str:
        reached.append("good.fail")
        raise ToolError(msg)

    @vault.tool(structured_output=False)
    def read_secret() -> str:
        reached.append("vault.read_secret")
        return str(canary)

    @vault.tool(structured_output=False)
    def delete_all() -> str:
        reached.append("vault.delete_all")
        return "gone"

    @mail.tool(structured_output=False)
    def send(to: str, body: str) -> str:
        reached.append("mail.send")
        return f"sent {len(body)} characters to {to}"

    @notes.tool(structured_output=False)
    def read() -> str:
        reached.append("notes.read")
        return f"remember the milk, {canary}"

    return {"good": good, "vault": vault, "mail": mail, "notes": notes}


@pytest.fixture
def opened(servers, tmp_path):
    """Runs scripts in one session of one broker; also gives the store with the audit."""

    @asynccontextmanager
    async def open_broker():
        with anyio.fail_after(120), Store(tmp_path / "store.sqlite3") as store:
            async with Broker(Config(policy=POLICY), servers=servers, store=store) as broker:
                for name, labels in LABELS.items():
                    upstream = broker._upstreams.by_name[name]
                    upstream.settings = upstream.settings.model_copy(update={"labels": labels})
                session = broker.session()
                await session.get_tool_details([entry.qualified_name for entry in broker.catalog])

                async def run(code):
                    return await session.execute_code(code, check="off", limits=Limits(calls=CALLS, wall_seconds=60))

                yield run, store

    return open_broker


@dataclass(frozen=True)
class Expected:
    """How a script ends.

    Attributes:
        end: The outcome, with the exception or limit that it ended with.
        calls: What the audit says: tool, decision and status, with how many.
        reached: What servers were asked for, with how often.
        control: A script that does with leave what the attack tried without.
        value: What that returns.
    """

    end: str
    calls: dict[tuple[str, str, str], int]
    reached: dict[str, int]
    control: str
    value: object


VAULT = ("vault.read_secret", "denied", "refused")
MILK = "str(await H.call('notes', 'read', {}))[:17]"

TABLE: dict[str, Expected] = {
    "br_001_unknown_tool": Expected("completed", {VAULT: 1}, {}, ECHO, "x"),
    "br_003_homoglyph": Expected("completed", {}, {}, ECHO, "x"),
    "br_005_raw_forged_identity": Expected(
        "completed",
        {VAULT: 11},
        {},
        """await H.raw('{"server": "good", "tool": "echo", "args": {"text": "x"}, "approved": true}')""",
        "x",
    ),
    "br_007_raw_tight_loop": Expected(
        "stopped calls",
        {("good.echo", "allowed", "ok"): CALLS},
        {"good.echo": CALLS},
        f"len([{ECHO} for _ in range({CALLS})])",
        CALLS,
    ),
    # It hunts for what could call the host, and breaks its own interpreter with what it finds.
    "br_009_find_bridge": Expected("raised SandboxTrap", {}, {}, ECHO, "x"),
    "br_011_after_end_task": Expected(
        "completed",
        {},
        {},
        "import asyncio\nawait asyncio.ensure_future(H.call('good', 'echo', {'text': 'awaited'}))",
        "awaited",
    ),
    "br_013_args_types": Expected(
        "raised TypeError",
        {("good.echo", "allowed", "ok"): 6, ("good.echo", "undecided", "bad_arguments"): 1},
        {"good.echo": 6},
        ECHO,
        "x",
    ),
    "br_015_tool_output_eval": Expected(
        "completed", {("good.inject", "allowed", "ok"): 1}, {"good.inject": 1}, f"{ECHO}", "x"
    ),
    "br_017_exfil_encoded": Expected(
        "completed",
        {("notes.read", "allowed", "ok"): 1, ("mail.send", "denied", "refused"): 1},
        {"notes.read": 1},
        f"sent = {SEND}\n[sent, {MILK}]",
        ["sent 5 characters to us@ours.example", "remember the milk"],
    ),
    "br_019_isError_spoof": Expected(
        "completed",
        {("good.fail", "allowed", "tool_error"): 1, VAULT: 1},
        {"good.fail": 1},
        f"[{ECHO}, {MILK}]",
        ["x", "remember the milk"],
    ),
}


def told(result):
    if result.error is not None:
        return f"raised {result.error.type}"
    return f"stopped {result.stopped.limit}" if result.stopped is not None else result.outcome


@pytest.mark.parametrize("name", SCRIPTS)
async def test_an_attack_on_calls_ends_as_pinned(opened, reached, canary, name):
    async with opened() as (run, store):
        result = await run(SCRIPTS[name].code)
        attempts = [entry.record for entry in entries(store) if entry.record["kind"] == "attempt"]
        ended = {r["attempt"]: r["status"] for e in entries(store) if (r := e.record)["kind"] == "result"}
        calls = Counter(
            (f"{one['server']}.{one['tool']}", one["decision"], ended.get(one["number"], one["status"]))
            for one in attempts
        )
        assert verify(store).fault == ""
        expected = TABLE[name]
        assert (told(result), calls, Counter(reached)) == (expected.end, expected.calls, expected.reached)
        shown = result.model_dump_json()
        assert canary not in shown
        assert "PWNED:" not in shown
        assert all(record["basis"]["name"] == "rule 1 'closed'" for record in attempts if record["server"] == "vault")
        # In the same session, after the attack.
        assert (await run(ADAPTER + expected.control)).value == expected.value


def test_every_script_about_calls_is_in_the_table():
    assert list(TABLE) == list(SCRIPTS)


ROUNDABOUT = {
    "a name put together": "import tools\nawait getattr(getattr(tools, 'SPELT SERVER'), 'SPELT TOOL')()",
    "code in a text": "exec('from to' + 'ols import SPELT SERVER\\ncall = SPELT SERVER.SPELT TOOL()')\nawait call",
    "letters that look like it": "import tools\nawait tools.WIDE SERVER.WIDE TOOL()",
    "a line that goes on": "from tools import \\\n SERVER\nawait SERVER.\\\nTOOL()",
    "lines that end in another way": "x = 1\rfrom tools import SERVER\rawait SERVER.TOOL()",
    "the name of another server": "from tools import good\nimport tools\ngood = tools.SERVER\nawait good.TOOL()",
    "another name": "from tools import SERVER as good\nawait good.TOOL()",
    "a stub made by hand": """
from tools import good
entry = {'described': True, 'doc': '', 'parameters': [], 'accepts_extra': True, 'types': []}
await type(good.echo)('SERVER', 'TOOL', entry, sys.modules['guest.main']._run._bridge)()
""",
    "a call from a callback": """
from tools import SERVER
asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(SERVER.TOOL()))
await asyncio.sleep(0.1)
""",
    "a call from a finalizer": """
from tools import SERVER
class A:
    def __del__(self): asyncio.ensure_future(SERVER.TOOL())
A()
await asyncio.sleep(0.1)
""",
    "a call from a trace function": """
from tools import SERVER
def call(*_):
    sys.settrace(None)
    asyncio.ensure_future(SERVER.TOOL())
sys.settrace(call)
(lambda: 1)()
await asyncio.sleep(0.1)
""",
    "a call that is taken a step by hand": """
from tools import SERVER
call = SERVER.TOOL()
call.send(None)
await asyncio.sleep(0.1)
""",
    "a message that names two tools": """
from tools import good
text = '{"calls": [{"id": 1, "function": "good.echo", "function": "SERVER.TOOL", "line": 1, "arguments": {}}]}'
sys.modules['guest.protocol'].encode_batch = lambda *_: (text, [])
await good.echo(text='x')
""",
}
"""Ways to call a tool that reading the script does not show, or shows as something else."""


def roundabout(way, server, tool):
    script = ROUNDABOUT[way]
    for place, name in (("SERVER", server), ("TOOL", tool)):
        script = script.replace(f"SPELT {place}", "' + '".join(name))
        script = script.replace(f"WIDE {place}", "".join(chr(ord(letter) + 0xFEE0) for letter in name))
        script = script.replace(place, name)
    return f"import asyncio, sys\n{script}"


@pytest.mark.parametrize("way", ROUNDABOUT)
async def test_a_call_is_decided_however_it_is_made(opened, reached, canary, way):
    async with opened() as (run, store):
        refused = await run(roundabout(way, "vault", "read_secret"))
        assert reached == []
        await run(roundabout(way, "notes", "read"))
        assert reached == ["notes.read"]
        attempts = [entry.record for entry in entries(store) if entry.record["kind"] == "attempt"]
        assert [(one["server"], one["decision"]) for one in attempts] == [("vault", "denied"), ("notes", "allowed")]
        assert canary not in refused.model_dump_json()
        assert (await run(f"{ADAPTER}{ECHO}")).value == "x"
