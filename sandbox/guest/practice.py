"""Scripts run while the image is made, so that the first real script finds the interpreter practised.

CPython rewrites the bytecode of a function after it has run a few times, and fills caches on the way. Each of these
writes costs an instance a private copy of the page it falls on. What has happened before the snapshot is shared by
all instances, and is not done again by each.
"""

import builtins
import json
import linecache
import sys

ROUNDS = 12
"""More than the interpreter waits before it specialises a function."""

DESCRIBED = {
    "described": True,
    "doc": "",
    "parameters": [["first", "first", True], ["second", "second", False]],
    "accepts_extra": False,
    "types": [],
}
_MANIFEST = {
    "practice": {"doc": "", "functions": {"echo": DESCRIBED, "other": {"described": False, "fetch": ""}}},
}

_CALLS = """
import asyncio
import json
from tools import practice
found = await practice.echo(first=1, second={'a': [1.5, None, True]})
both = await asyncio.gather(practice.echo(first='a'), practice.echo(first=[1]))
async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
    task = tasks.create_task(practice.echo(first=2))
await asyncio.sleep(0)
print(json.dumps(json.loads('{"b": [1, 2]}')), f'{found}')
return {'all': [found, *both, task.result()]}
"""
_REFUSED = """
from tools import ToolError, practice
try:
    await practice.echo(first='refused')
except ToolError as error:
    print(error)
"""
_FAILING = """
def function(value):
    return 1 / value

for index in range(3):
    pass
function(0)
"""
SCRIPTS = ("print('text', 1, end='')\n1 + 1", _CALLS, _REFUSED, _FAILING)


def practise(component, script: str) -> None:
    """Run a script through the component's own exports, as a host would."""
    component.references(json.dumps({"script": script, "unimported": ["practice"]}))
    step = json.loads(component.start(start_of(script, _MANIFEST)))
    while "outcome" not in step:
        completions = [_answer(call) for call in step["calls"]]
        step = json.loads(component.resume(json.dumps(completions)))
    if ("completed" in step["outcome"]) is (script is _FAILING):
        raise RuntimeError(f"practice went wrong: {step['outcome']}")


def forget() -> None:
    """Leave nothing of the scripts behind but the names that every run sets: a name that is there takes one page."""
    linecache.clearcache()
    for name in [name for name in sys.modules if name.startswith("tools.")]:
        del sys.modules[name]
    sys.modules["tools"] = builtins.tools = None


def start_of(script: str, manifest: dict, seed: int = 0) -> str:
    """Return the message that begins a run, as a host writes it."""
    message = {"script": script, "filename": "script.py", "seed": seed, "manifest": manifest, "kernel": False}
    return json.dumps(message) + json.dumps({"rest": {"doc": "", "functions": {}}})


def _answer(call):
    if call["arguments"]["first"] == "refused":
        return {"id": call["id"], "error": {"kind": "ToolRefusedError", "message": "no", "details": {}}}
    return {"id": call["id"], "value": {"text": "answer", "numbers": [1, 2.5, None]}}
