"""What a server asks during a call goes to a person, with its name, or is refused: both eras, a real process."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, cast

import anyio
import httpx2
import mcp.types as t
import pytest
from mcp.server.mcpserver import Resolve, Sample

from broker import Broker, Config, Grant, PolicyConfig, QuestionBox, ServerConfig
from broker.authorization.forms import FormReply
from broker.authorization.http_answers import answers_app
from broker.config.sandbox_settings import SandboxSettings

pytestmark = pytest.mark.anyio

TOKEN = "a-token-of-the-tests"  # noqa: S105  # of an application in this process
SERVERS = Path(__file__).parents[1] / "servers"
# What is asked is independent of where the script runs, and no process of the sandbox has to be started.
IN_THREADS = SandboxSettings(isolation="thread")
ASK = """
from tools import curious, ToolError
try:
    told = await curious.ask(what=WHAT, times=TIMES)
except ToolError as error:
    told = str(error)
told
"""

IN_A_ROW = """
from tools import curious, ToolError
told = []
for what, times in ASKED:
    try:
        told.append(await curious.ask(what=what, times=times))
    except ToolError as error:
        told.append(str(error))
told
"""


class Person:
    """An answerer of the embedding program that can show forms."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.forms = []

    async def answer(self, _question):
        return [Grant("curious.*")]

    async def fill(self, form):
        self.forms.append(form)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if callable(reply):
            return await reply()
        return reply


class WithoutForms:
    async def answer(self, _question):
        return [Grant("curious.*")]


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """A process for each test: one loop is enough."""
    return request.param


@pytest.fixture(params=["auto", "legacy"])
def mode(request):
    """The newer era, then the one with a handshake."""
    return request.param


@pytest.fixture
def told(log):
    """What the server was told, in order."""
    return lambda: [one["told"] for line in log.read_text().splitlines() if "told" in (one := json.loads(line))]


@pytest.fixture
def beside(log, mode):
    @asynccontextmanager
    async def open_broker(*, program="curious", elicitation=True, sampler=None, policy=None, **settings):
        server = ServerConfig(
            command=sys.executable,
            args=(str(SERVERS / f"{program}.py"),),
            env={"CURIOUS_LOG": str(log)},
            mode=mode,
            elicitation=elicitation,
            **settings,
        )
        config = Config(servers={"curious": server}, policy=policy or PolicyConfig(), sandbox=IN_THREADS)
        with anyio.fail_after(60):
            async with Broker(config, sampler=sampler, startup_seconds=30) as broker:
                yield broker

    return open_broker


async def ask(broker, person, what, times=1):
    session = broker.session(answerer=person)
    script = ASK.replace("WHAT", repr(what)).replace("TIMES", str(times))
    result = await session.execute_code(script, describe_references=True)
    assert result.error is None, result.error
    return result.value


FILLED = FormReply("accept", {"name": "Anna", "colour": "g", "old": True, "age": 7})


@pytest.mark.parametrize("program", ["curious", "curious_sdk"])
async def test_a_person_fills_in_the_form_of_a_server_and_is_told_which_one_asks(beside, told, program):
    person = Person(FILLED)
    async with beside(program=program) as broker:
        value = await ask(broker, person, "name")
    assert told() == [{"action": "accept", "content": {"name": "Anna", "colour": "g", "old": True, "age": 7}}]
    assert json.loads(value) == told()[0]
    [form] = person.forms
    assert form.as_text() == "The server curious asks (while its tool ask is called):\n| Who are you?"
    assert [(one.name, one.title, one.kind, one.is_required) for one in form.fields] == [
        ("name", "Your name", "text", True),
        ("colour", "colour", "choice", False),
        ("old", "old", "yes or no", False),
        ("age", "age", "integer", False),
    ]
    assert form.fields[1].options == (("r", "Red"), ("g", "Green"))


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_no_of_the_person_is_what_the_server_is_told(beside, told, action):
    async with beside() as broker:
        await ask(broker, Person(FormReply(action, {"name": "Anna"})), "name")
    assert told() == [{"action": action}]


async def late():
    with anyio.move_on_after(0.3, shield=True):
        await anyio.sleep_forever()
    return FILLED


async def unlike_a_reply():
    return FormReply("accept", cast("Any", None))


async def test_no_answer_in_time_and_a_failing_answerer_are_no_answer(beside, told):
    for reply in (anyio.sleep_forever, late, ValueError("broken"), unlike_a_reply):
        async with beside(policy=PolicyConfig(answer_timeout_seconds=0.2)) as broker:
            await ask(broker, Person(reply), "name")
    assert told() == [{"action": "cancel"}] * 4


# What is asked, the reply of the person (None where the answerer shows no forms), settings, what the script reads.
REFUSED = {
    "nobody can show a form": ("name", None, {}, "nobody is there to ask"),
    "the config does not allow it": ("name", FILLED, {"elicitation": False}, "does not let curious ask a person"),
    "an answer that does not fit": ("name", FormReply("accept", {"name": 5}), {}, "does not fit the form"),
    "an answer with more in it": ("name", FormReply("accept", {"name": "a", "x": 1}), {}, "does not fit the form"),
    "an answer with half a character": ("name", FormReply("accept", {"name": "\ud800"}), {}, "half of a surrogate"),
    "a form in a form": ("nested", FILLED, {}, "is of no kind that a form has"),
    "too many fields": ("many", FILLED, {}, "at most 20 fields"),
    "too many options": ("many options", FILLED, {}, "at most 100 options"),
    "a name that looks like another": ("odd name", FILLED, {}, "has no plain name"),
    "an address without encryption": ("plain url", FILLED, {}, "is not an https one"),
    "an address that is a script": ("script url", FILLED, {}, "is not an https address"),
    "an address that hides its host": ("misleading url", FILLED, {}, "hides where it leads"),
    "a model": ("sampling", FILLED, {}, "no model was given"),
    "folders of the host": ("roots", FILLED, {}, "of this kind are refused"),
}
SDK_REFUSES = {"the config does not allow it", "a model", "folders of the host"}
"""Of the older era: no such capability was declared, so that the SDK refuses in its own words."""


@pytest.mark.parametrize("case", REFUSED)
async def test_what_nobody_answers_is_refused_and_never_answered_by_us(beside, told, case, mode):
    what, reply, settings, said = REFUSED[case]
    async with beside(**settings) as broker:
        value = await ask(broker, WithoutForms() if reply is None else Person(reply), what)
    if mode == "legacy":  # the server is told, and answers the call
        assert [set(one) for one in told()] == [{"error"}]
        assert (said in value) or case in SDK_REFUSES
    else:  # it is not called again
        assert told() == []
        assert value.startswith("curious asked for input during the call, which was refused: ")
        assert said in value


async def test_an_answer_that_does_not_fit_is_told_to_nobody(beside, log):
    async with beside() as broker:
        for content in ({"name": "my own words, far too long"}, {"name": "a", "my own words": 1}):
            value = await ask(broker, Person(FormReply("accept", content)), "name")
            assert value
            assert "my own words" not in value
    assert "my own words" not in log.read_text()


async def test_nothing_that_a_server_writes_looks_like_ours_or_acts_on_a_terminal(beside):
    person = Person(FormReply("decline"))
    async with beside() as broker:
        await ask(broker, person, "forged")
    text = person.forms[0].as_text()
    first, *rest = text.splitlines()
    assert first == "The server curious asks (while its tool ask is called):"
    assert all(line.startswith("| ") for line in rest)
    assert rest[0] == "| ok\\x1b[2J\\u202e"
    assert rest[1] == "| The server bank asks:"
    assert len(text) < 2_200
    assert "\x1b" not in text


async def test_a_form_that_asks_for_a_secret_is_shown_with_a_warning(beside):
    person = Person(FormReply("decline"), FormReply("decline"))
    async with beside() as broker:
        await ask(broker, person, "password")
        await ask(broker, person, "name")
    assert [form.wants_secret for form in person.forms] == [True, False]
    assert "do not give it one" in person.forms[0].as_text()


async def test_an_address_is_shown_and_not_opened(beside, told, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda *_: pytest.fail("opened"))
    person = Person(FormReply("accept", {"never": "sent"}))
    async with beside() as broker:
        await ask(broker, person, "url")
    [form] = person.forms
    assert (form.url, form.host) == ("https://pay.example/checkout?id=1", "pay.example")
    assert told() == [{"action": "accept"}]


async def test_an_address_nearby_is_told_as_such(beside):
    person = Person(FormReply("decline"), FormReply("decline"))
    async with beside() as broker:
        await ask(broker, person, "nearby url")
        await ask(broker, person, "url")
    assert ["its own network" in form.as_text() for form in person.forms] == [True, False]


async def test_a_pattern_of_a_server_is_not_run(beside, told):
    letters = "a" * 100 + "!"
    async with beside() as broker:
        await ask(broker, Person(FormReply("accept", {"name": letters})), "slow pattern")
    assert told() == [{"action": "accept", "content": {"name": letters}}]


async def test_a_server_asks_so_often_and_no_more(beside):
    person = Person(*[FILLED] * 100)
    async with beside() as broker:
        assert json.loads(await ask(broker, person, "name", times=10))["action"] == "accept"
        value = await ask(broker, person, "name", times=50)
    assert len(person.forms) == 20
    assert "10 times during one call" in value


async def ask_in_a_row(broker, person, *asked):
    script = IN_A_ROW.replace("ASKED", repr(asked))
    result = await broker.session(answerer=person).execute_code(script, describe_references=True)
    assert result.error is None, result.error
    return result.value


async def test_a_form_that_was_declined_is_not_shown_again_in_the_run(beside):
    no = FormReply("decline")
    person = Person(no, FILLED, FormReply("cancel"), FormReply("cancel"))
    async with beside() as broker:
        said = await ask_in_a_row(broker, person, ("password", 1), ("password", 1), ("name", 1), *[("url", 1)] * 2)
        again = Person(no)
        await ask(broker, again, "password")
    assert [form.message[0] for form in person.forms] == ["Your password, please.", "Who are you?", "Pay.", "Pay."]
    assert "the person has declined this form before, during this run" in said[1]
    assert len(again.forms) == 1


async def test_a_person_is_shown_so_many_forms_in_a_run_and_no_more(beside):
    person = Person(*[FILLED] * 100)
    async with beside() as broker:
        said = await ask_in_a_row(broker, person, *[("name", 10)] * 3, *[("name", 1)] * 2)
        assert len(person.forms) == 30
        assert [text.count("has been shown 30 forms") for text in said] == [0, 0, 0, 1, 1]
        await ask(broker, person, "name")
    assert len(person.forms) == 31


async def test_a_person_may_take_longer_than_the_call(beside, told):
    async def slowly():
        await anyio.sleep(1.5)
        return FILLED

    async with beside(call_timeout_seconds=1) as broker:
        await ask(broker, Person(slowly), "name")
    assert told()[0]["action"] == "accept"


async def test_the_question_is_taken_back_when_its_run_ends(beside):
    taken_back, shown = anyio.Event(), anyio.Event()

    async def wait():
        shown.set()
        try:
            await anyio.sleep_forever()
        finally:
            taken_back.set()

    async with beside() as broker:
        session = broker.session(answerer=Person(wait))
        stop = anyio.CancelScope()

        async def run():
            await session.execute_code(
                ASK.replace("WHAT", "'name'").replace("TIMES", "1"), describe_references=True, stop=stop
            )

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await shown.wait()
            stop.cancel()
            await taken_back.wait()


@pytest.mark.parametrize("mode", ["legacy"])  # in the newer era a question is the answer to one call
async def test_a_server_that_does_not_say_for_whom_it_asks_reaches_nobody_while_two_runs_call_it(beside, told):
    waiting, go_on = anyio.Event(), anyio.Event()

    async def first():
        waiting.set()
        await go_on.wait()
        return FILLED

    other = Person(FILLED)
    async with beside() as broker, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, broker, Person(first), "name")
        await waiting.wait()
        assert "calls of several runs are open" in await ask(broker, other, "name")
        go_on.set()
    assert other.forms == []
    assert [one.get("action") for one in told()] == [None, "accept"]


async def test_a_call_says_that_nobody_can_be_asked(beside, log, mode):
    async with beside() as broker:
        await ask(broker, WithoutForms(), "roots")
        await ask(broker, Person(), "roots")
        await ask(broker, WithoutForms(), "roots")
    told = [json.loads(line)["may ask"] for line in log.read_text().splitlines() if "may ask" in line]
    # The older era has one handshake for all calls.
    assert told == ([False, True, False] if mode == "auto" else [True, True, True])


@pytest.mark.filterwarnings("ignore:.*sampling.*deprecated")
async def test_a_model_of_the_host_answers_when_there_is_one(beside, told):
    async def sampler(sampling):
        assert (sampling.server, sampling.params.max_tokens) == ("curious", 10)
        return t.CreateMessageResult(role="assistant", content=t.TextContent(type="text", text="hello"), model="m")

    async with beside(sampler=sampler) as broker:
        await ask(broker, WithoutForms(), "sampling")
    assert told()[0]["content"] == {"type": "text", "text": "hello"}


@pytest.mark.filterwarnings("ignore:.*sampling.*deprecated")
@pytest.mark.parametrize("answer", ["hello", None, {"role": "assistant"}], ids=str)
async def test_a_model_that_answers_with_something_else_has_refused(beside, told, caplog, answer):
    async def sampler(_sampling):
        return answer

    async with beside(sampler=sampler) as broker:
        value = await ask(broker, WithoutForms(), "sampling")
    kind = type(answer).__name__
    assert f"a sampler returns a CreateMessageResult; this one did not' returned='{kind}'" in caplog.text
    assert "the host refused" in value, told()


@pytest.mark.filterwarnings("ignore:.*sampling.*deprecated")
async def test_a_model_that_is_no_async_function_is_named_in_the_log(beside, caplog):
    def sampler(_sampling):
        return t.CreateMessageResult(role="assistant", content=t.TextContent(type="text", text="hello"), model="m")

    async with beside(sampler=sampler) as broker:
        assert "the host refused" in await ask(broker, WithoutForms(), "sampling")
    assert "sampler is an `async def` function; this one returned a CreateMessageResult" in caplog.text


def greeted() -> Sample:
    message = t.SamplingMessage(role="user", content=t.TextContent(type="text", text="Say hello."))
    return Sample([message], max_tokens=10)


async def test_a_model_that_answers_a_function_with_something_else_has_refused(caplog):
    async def sampler(_sampling):
        return "hello"

    async def greet(said: Annotated[t.CreateMessageResult, Resolve(greeted)]) -> str:
        await anyio.lowlevel.checkpoint()
        return said.model

    script = ASK.replace("curious.ask(what=WHAT, times=TIMES)", "curious.greet()")
    with anyio.fail_after(60):
        async with Broker(Config(sandbox=IN_THREADS), servers={"curious": [greet]}, sampler=sampler) as broker:
            session = broker.session(grants=[Grant("*")])
            result = await session.execute_code(script, describe_references=True)
    assert "the host refused" in result.value, result.error
    assert "a sampler returns a CreateMessageResult; this one did not' returned='str'" in caplog.text


async def hello(_sampling):
    return t.CreateMessageResult(role="assistant", content=t.TextContent(type="text", text="hello"), model="m")


async def half(_sampling):
    return t.CreateMessageResult(role="assistant", content=t.TextContent(type="text", text="\ud800"), model="m")


@pytest.mark.filterwarnings("ignore:.*sampling.*deprecated")
@pytest.mark.parametrize("mode", ["auto"])  # in the older one the SDK answers
@pytest.mark.parametrize(
    ("what", "sampler", "said"),
    [
        ("deep sampling", hello, "the request cannot be read"),
        ("sampling", half, "half of a surrogate pair"),
        ("half a state", hello, "half of a surrogate pair"),
        ("half a key", hello, "half of a surrogate pair"),
    ],
)
async def test_what_cannot_be_written_is_refused_and_the_script_goes_on(beside, told, what, sampler, said):
    person = Person(FILLED)
    async with beside(sampler=sampler) as broker:
        value = await ask(broker, person, what)
        assert (said in value, person.forms, told()) == (True, [], []), value
        await ask(broker, person, "name")
    assert told() == [{"action": "accept", "content": FILLED.content}]


@pytest.fixture
def with_secret(log, tmp_path, mode):
    """A config whose server is given a secret."""

    def config(secret):
        server = {
            "command": sys.executable,
            "args": [str(SERVERS / "curious.py")],
            "env": {"CURIOUS_LOG": str(log), "API_TOKEN": "${TOKEN}"},
            "mode": mode,
            "elicitation": True,
        }
        text = json.dumps({"mcpServers": {"curious": server}})
        return Config.parse(text, source="c", folder=tmp_path, environment={"TOKEN": secret})

    return config


async def test_a_secret_in_a_question_is_not_shown(with_secret):
    person = Person(FormReply("decline"))
    with anyio.fail_after(60):
        async with Broker(with_secret("Who are"), startup_seconds=30) as broker:
            await ask(broker, person, "name")
    assert person.forms[0].message == ("[redacted] you?",)


async def test_a_secret_in_a_request_for_a_model_is_not_told(with_secret):
    asked: list[str] = []

    async def sampler(sampling):
        asked.extend(message.content.text for message in sampling.params.messages)
        return t.CreateMessageResult(role="assistant", content=t.TextContent(type="text", text="hello"), model="m")

    with anyio.fail_after(60):
        async with Broker(with_secret("Say hell"), sampler=sampler, startup_seconds=30) as broker:
            await ask(broker, WithoutForms(), "sampling")
    assert asked == ["[redacted]o."]


@asynccontextmanager
async def over_http(box):
    transport = httpx2.ASGITransport(app=answers_app(box, token=TOKEN))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://broker", headers=headers) as http:
        yield http


async def asked_over_http(broker, what, reply, *, park=False):
    """Run a script whose call asks `what`, and return what `reply` returns, given HTTP and the form, and its result."""
    asked = anyio.Event()
    box = QuestionBox("http", on_form=lambda _: asked.set())
    session = broker.session(answerer=box, grants=[Grant("curious.*")])
    results = []

    async def run():
        script = ASK.replace("WHAT", repr(what)).replace("TIMES", "1")
        results.append(await session.execute_code(script, describe_references=True, park=park))

    async with over_http(box) as http:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await asked.wait()
            [form] = (await http.get("/questions")).json()["forms"]
            said = await reply(http, form)
        assert (await http.get("/questions")).json() == {"questions": [], "forms": []}
    return said, results[0]


@pytest.mark.parametrize("park", [False, True])
async def test_a_form_is_answered_over_http(beside, told, park):
    async def reply(http, form):
        assert (form["server"], form["tool"], form["wants_secret"]) == ("curious", "ask", False)
        assert "| Who are you?" in form["text"]
        assert form["schema"]["required"] == ["name"]
        content = {"name": "Anna", "colour": "g"}
        first = await http.post(f"/forms/{form['id']}", json={"action": "accept", "content": content})
        again = await http.post(f"/forms/{form['id']}", json={"action": "decline"})
        return first.status_code, again.status_code

    async with beside() as broker:
        said, result = await asked_over_http(broker, "name", reply, park=park)
    assert said[0] == 204
    assert said[1] in {404, 409}
    assert (result.outcome, len(told())) == ("completed", 1)
    assert told()[0]["content"] == {"name": "Anna", "colour": "g"}


async def test_an_address_is_shown_over_http_and_takes_no_content(beside, told):
    async def reply(http, form):
        assert form["url"] == "https://pay.example/checkout?id=1"
        path = f"/forms/{form['id']}"
        wrong = await http.post(path, json={"action": "accept", "content": {"name": "Anna"}})
        return wrong.json()["error"], (await http.post(path, json={"action": "accept"})).status_code

    async with beside() as broker:
        said, _ = await asked_over_http(broker, "url", reply)
    assert said == ("content: there is no field 'name'", 204)
    assert told()[0]["action"] == "accept"


BAD_FILLINGS = {
    "no JSON": (b"{", "the body: Invalid JSON"),
    "no action": (b"{}", "action: Field required"),
    "another action": (b'{"action": "allow"}', "action: Input should be 'accept', 'decline' or 'cancel'"),
    "a field left out": (b'{"action": "accept"}', "content: 'name' is a required property"),
    "another type": (b'{"action": "accept", "content": {"name": 5}}', "content: name: 5 is not of type 'string'"),
    "another field": (b'{"action": "accept", "content": {"name": "A", "x": 1}}', "content: there is no field 'x'"),
    "choices": (b'{"choices": [{"decision": "any"}]}', "action: Field required"),
}


async def test_a_bad_answer_to_a_form_is_explained_and_the_form_stays_open(beside, told):
    async def reply(http, form):
        path = f"/forms/{form['id']}"
        for body, text in BAD_FILLINGS.values():
            response = await http.post(path, content=body)
            assert (response.status_code, text in response.json()["error"]) == (400, True), response.text
        assert (await http.post("/forms/f_0", json={"action": "cancel"})).status_code == 404
        assert (await http.post(f"/questions/{form['id']}", json={"choices": []})).status_code == 404
        assert (await http.post(path, json={"action": "cancel"}, headers={"Authorization": ""})).status_code == 401
        assert told() == []
        return (await http.post(path, json={"action": "decline"})).status_code

    async with beside() as broker:
        said, _ = await asked_over_http(broker, "name", reply)
    assert (said, [one["action"] for one in told()]) == (204, ["decline"])


async def test_a_form_in_a_box_that_nobody_answers_is_taken_back(beside, told):
    async def nothing(_http, _form):
        return None

    async with beside(policy=PolicyConfig(answer_timeout_seconds=0.5)) as broker:
        _, result = await asked_over_http(broker, "name", nothing)
    assert result.outcome == "completed"
    assert [one["action"] for one in told()] == ["cancel"]
