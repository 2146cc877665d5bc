"""What whoever listens to a run is told of its output, and what is said of a run that is stopped from outside."""

from __future__ import annotations

import anyio
import pytest

from broker import Broker, Config
from broker.redaction import Redactor
from broker.runs.run_output import RunOutput

SECRET = "hunter2-hunter2"  # noqa: S105  # what must not be seen


def test_a_secret_in_pieces_is_kept_from_who_listens_and_the_two_streams_stay_apart():
    heard: list[tuple[str, str]] = []
    output = RunOutput(lambda *piece: heard.append(piece), Redactor([SECRET]))
    for stream, text in (("stdout", "a hunter2"), ("stderr", "b hunter2"), ("stdout", "-hunter2 c"), ("stderr", "-")):
        output.add(stream, text)
    output.end()
    told = {stream: "".join(text for one, text in heard if one == stream) for stream in ("stdout", "stderr")}
    assert told == {"stdout": "a [redacted] c", "stderr": "b hunter2-"}


@pytest.mark.anyio
async def test_who_listens_to_a_run_hears_all_of_it_but_its_secrets():
    heard: list[tuple[str, str]] = []
    config = Config()
    config._resolved = frozenset([SECRET])
    async with Broker(config) as broker:
        script = f"print('{SECRET}')\nprint('hunter2', end='')"
        await broker.session().execute_code(script, on_output=lambda *piece: heard.append(piece))
    assert {stream for stream, _ in heard} == {"stdout"}
    assert "".join(text for _, text in heard) == "[redacted]\nhunter2"


@pytest.mark.anyio
async def test_a_run_that_is_stopped_from_outside_says_what_it_had_printed():
    script = "import asyncio, sys\nprint('é')\nprint('no', file=sys.stderr)\nprint(end='', flush=True)\n"
    stop = anyio.CancelScope()
    with anyio.fail_after(60):
        async with Broker(Config()) as broker:
            result = await broker.session().execute_code(
                f"{script}await asyncio.sleep(1_000)",
                stop=stop,
                on_output=lambda stream, _: stop.cancel() if stream == "stderr" else None,
            )
    assert result.stopped is not None
    assert (result.outcome, result.stopped.limit) == ("stopped", "shutdown")
    assert (result.stdout, result.stderr) == ("é\n", "no\n")
    assert (result.usage["output_bytes"], result.usage["calls"]) == (6, 0)


def test_the_calls_of_a_run_that_is_stopped_from_outside_are_counted():
    usage = RunOutput(None, Redactor([])).result(1.5, 3).usage
    assert (usage.wall_seconds, usage.calls, usage.steps) == (1.5, 3, 0)
