"""A program that embeds the broker and has its questions answered over HTTP: `answering_host.py begin|again SCRIPT`.

It prints what a run that it begins waits for; where it listens, with the runs; what each waits for; and its result.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import anyio
import uvicorn

from broker import Broker, Config, QuestionBox
from broker.authorization.http_answers import answers_app
from broker.store import Store

TOKEN = os.environ["TOKEN"]
what, script = sys.argv[1], Path(sys.argv[2])
text = script.read_text()


def tell(**said: object) -> None:
    sys.stdout.write(f"{json.dumps(said)}\n")
    sys.stdout.flush()


async def main() -> None:
    with anyio.fail_after(60):  # nobody waits for ever for a line
        await answer()


async def answer() -> None:
    box = QuestionBox("http")
    sock = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(answers_app(box, token=TOKEN), log_config=None))
    config = Config.load(script.with_name("mcp.json"))
    with Store.in_user_folder() as store:
        async with Broker(config, store=store) as broker, anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [sock])
            session = broker.session(answerer=box, principal="ada")
            if what == "begin":
                parked = await session.execute_code(text, describe_references=True, park=True)
                runs = [parked.run_id]
                tell(waits=parked.waits_for.text if parked.waits_for else None)
            else:
                runs = session.resume_parked()
            tell(port=sock.getsockname()[1], runs=runs)
            for run in runs:
                result = await session.wait_for(run)
                while result.outcome == "parked":
                    tell(waits=result.waits_for.text if result.waits_for else None)
                    result = await session.wait_for(run)
                tell(run=run, outcome=result.outcome, value=result.value, stdout=result.stdout)
            server.should_exit = True


anyio.run(main)
