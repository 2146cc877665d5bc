"""What a script does not have, and what it is told to use instead."""

from __future__ import annotations

import pytest

from sandbox import Completed

pytestmark = pytest.mark.anyio

FILES = "a script has no files: keep data in variables, and use a server's tools to read or write files"
NETWORK = "a script has no network: call a server's tools instead"
PROCESSES = "a script cannot start processes: call a server's tools instead"
THREADS = "a script has no threads: use asyncio.gather or asyncio.TaskGroup to do things at the same time"
ENVIRONMENT = "a script has no environment: servers have their own credentials, so none are needed here"
OWN_LOOP = "a script can `await` at its top level, in asyncio's event loop"
LOOP = (
    "the script already runs in an event loop: write `await ...` instead, in functions that are `async def` and are "
    "awaited themselves"
)
ASKED = "a script has no files, so this says nothing about the user's: ask a server's tools whether one is there"
IN_MEMORY = 'sqlite3.connect(":memory:") works'
INPUT = "a script has no standard input: write the data into the script, or read it from a tool"
LOCK = f"the script waits for a lock that nothing can release: {THREADS}"

SORTED = """
import sqlite3
count = "with recursive t(n) as (select 1 union all select n + 1 from t limit 500000)"
sqlite3.connect(":memory:").execute(f"{count} select n from t order by -n").fetchone()
"""


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("open('/etc/passwd')", "PermissionError", FILES),
        ("open('out.txt', 'w')", "PermissionError", FILES),
        ("import pathlib\npathlib.Path('a').read_text()", "PermissionError", FILES),
        ("import os\nos.listdir('/')", "PermissionError", FILES),
        ("import os\nos.mkdir('/a')", "PermissionError", FILES),
        ("import os\nos.stat('/data/a.csv')", "PermissionError", FILES),
        ("import os\nos.path.getsize('/data/a.csv')", "PermissionError", FILES),
        ("import pathlib\npathlib.Path('a').stat()", "PermissionError", FILES),
        ("import os\nos.chdir('/data')", "PermissionError", FILES),
        ("import os\nos.chmod('/a', 0o600)", "PermissionError", FILES),
        ("import os\nos.replace('/a', '/b')", "PermissionError", FILES),
        ("import shutil\nshutil.rmtree('/data')", "PermissionError", FILES),
        ("import os\nos.path.exists(None)", "TypeError", "expected str, bytes or os.PathLike object, not NoneType"),
        ("import os\nos.write(7, b'x')", "PermissionError", FILES),
        ("import os\nlist(os.walk('.'))", "PermissionError", FILES),
        ("import glob\nglob.glob('*')", "PermissionError", FILES),
        ("import pathlib\nlist(pathlib.Path('.').rglob('*.py'))", "PermissionError", FILES),
        ("import urllib.request as u\nu.urlopen('https://example.com')", "PermissionError", NETWORK),
        ("import os\nos.environ['TOKEN']", "KeyError", f"'TOKEN'\n{ENVIRONMENT}"),
        ("from asyncio import run\ndef f():\n    run(None)\nf()", "RuntimeError", LOOP),
        ("import asyncio\nasyncio.Runner()", "RuntimeError", LOOP),
        (
            "import anyio",
            "ModuleNotFoundError",
            f"No module named 'anyio'\nanyio is not available and not needed: {OWN_LOOP}",
        ),
        (
            "import requests",
            "ModuleNotFoundError",
            f"No module named 'requests'\nrequests is not available, and {NETWORK}",
        ),
        ("import asyncio.tools", "ModuleNotFoundError", "No module named 'asyncio.tools'"),
        ("import socket\nsocket.socket()", "PermissionError", NETWORK),
        ("import socket\nsocket.getaddrinfo('localhost', 80)", "PermissionError", NETWORK),
        ("import socket\nsocket.gethostbyname('localhost')", "PermissionError", NETWORK),
        ("import os\nos.system('id')", "PermissionError", PROCESSES),
        ("import subprocess\nsubprocess.run(['id'])", "PermissionError", PROCESSES),
        ("import asyncio\nawait asyncio.open_connection('a', 80)", "PermissionError", NETWORK),
        ("import asyncio\nawait asyncio.create_subprocess_exec('ls')", "PermissionError", PROCESSES),
        ("import multiprocessing as m\nm.Process(target=print).start()", "PermissionError", PROCESSES),
        ("import multiprocessing as m\nm.Pool(2)", "PermissionError", PROCESSES),
        ("import concurrent.futures as f\nf.ProcessPoolExecutor()", "PermissionError", PROCESSES),
        ("import sqlite3\nsqlite3.connect('a.db')", "sqlite3.OperationalError", f"{FILES}; {IN_MEMORY}"),
        ("breakpoint()", "PermissionError", "nobody sits at a debugger here: print what you want to see"),
        ("import tempfile\ntempfile.NamedTemporaryFile()", "PermissionError", FILES),
        ("import http.client as c\nc.HTTPConnection('a').request('GET', '/')", "PermissionError", NETWORK),
        ("import threading\nthreading.Thread(target=print).start()", "PermissionError", THREADS),
        ("input()", "EOFError", INPUT),
        ("import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()", "RuntimeError", LOCK),
        ("import queue\nqueue.Queue().get()", "RuntimeError", LOCK),
        ("import threading\nthreading.Event().wait()", "RuntimeError", LOCK),
    ],
)
async def test_what_is_missing_says_what_to_use_instead(raised, script, kind, message):
    outcome = await raised(script)
    assert (outcome.type, outcome.message) == (kind, message)
    assert "guest" not in outcome.traceback


@pytest.mark.parametrize(
    "question",
    [
        "os.path.exists('/data/a.csv')",
        "os.path.isfile('a.csv')",
        "os.path.isdir('/data')",
        "os.access('/data', os.R_OK)",
        "pathlib.Path('/data/a.csv').exists()",
        "pathlib.Path('/data/a.csv').is_file()",
        "pathlib.Path('/data').is_dir()",
        "any(map(os.path.exists, ['a', 'b']))",
        "any(os.path.exists(str(number)) for number in range(1_000))",
    ],
)
async def test_a_script_that_asks_for_a_file_is_told_once_that_it_has_none(run, question):
    result = await run(f"import os, pathlib\nprint({question})")
    assert (result.stdout, result.stderr) == ("False\n", f"script.py:2: UserWarning: {ASKED}\n")


@pytest.mark.parametrize(
    "script",
    [
        "import mimetypes\nmimetypes.guess_type('a.csv')",
        "import shutil\nshutil.which('git')",
        "import pathlib\npathlib.Path('a/../b').resolve()",
        "import os\nos.path.realpath('a')",
        "import inspect, json\ntry:\n    inspect.getsource(json)\nexcept OSError:\n    pass",
        "import os\nos.path.exists(1)",
    ],
)
async def test_a_library_that_asks_for_a_file_asks_for_itself(run, script):
    result = await run(script)
    assert (type(result.outcome), result.stderr) == (Completed, "")


async def test_a_script_that_makes_a_folder_is_told_so_and_nothing_else(run):
    result = await run("import pathlib\npathlib.Path('out').mkdir(parents=True, exist_ok=True)")
    assert (result.outcome.type, result.outcome.message, result.stderr) == ("PermissionError", FILES, "")


async def test_what_a_script_puts_into_its_environment_is_there(run):
    script = "import os\nos.environ['A'] = 'b'\n(os.environ['A'], os.getenv('A'), os.getenv('C'))"
    assert (await run(script)).outcome == Completed(["b", "b", None])


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import _socket\n_socket.socket()", NETWORK),
        (
            "import queue\nqueue.SimpleQueue().get()",
            "the script waits for a lock that nothing can release: a script has no threads",
        ),
    ],
)
async def test_what_gets_around_those_words_meets_a_trap(raised, script, message):
    outcome = await raised(script)
    assert (outcome.type, outcome.message) == ("SandboxTrap", message)


@pytest.mark.parametrize(
    ("script", "value"),
    [
        (
            "import threading\nlock = threading.Lock()\nwith lock:\n    x = lock.locked()\n[x, lock.locked()]",
            [True, False],
        ),
        (
            "import threading\nl = threading.Lock()\n[l.acquire(), l.acquire(False), l.acquire(timeout=0.01)]",
            [True, False, False],
        ),
        ("import queue\nq = queue.Queue()\nq.put(1)\nq.get()", 1),
        ("import queue\ntry:\n    queue.Queue().get(timeout=0.01)\nexcept queue.Empty:\n    r = 'empty'\nr", "empty"),
        ("import threading\nthreading.Event().wait(0.01)", False),
        ("import threading\nwith threading.RLock():\n    r = 'in'\nr", "in"),
        ("import asyncio\nawait asyncio.to_thread(lambda: 5)", 5),
        ("import logging\nlogging.getLogger('a').warning('w')\n'logged'", "logged"),
        ("import os\n[dict(os.environ), os.getcwd()]", [{}, "/"]),
        ("import sys\nsys.argv", [""]),
        ("import argparse\nargparse.ArgumentParser().parse_args([])\n'parsed'", "parsed"),
        (SORTED, [500_000]),
        ("import io\nio.StringIO('a').read() + io.BytesIO(b'b').read().decode()", "ab"),
        ("import posix\nposix.write(1, b'text')", 4),
        ("import uuid\nuuid.uuid1().version", 1),
        ("import functools\n@functools.cached_property\ndef f(self): ...\n'lock free'", "lock free"),
    ],
)
async def test_what_needs_none_of_it_works(run, script, value):
    assert (await run(script)).outcome == Completed(value)
