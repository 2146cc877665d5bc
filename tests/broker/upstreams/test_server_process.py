"""What is left of the files that a process may open when servers have taken theirs."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes there have no such limit")

TAKE_ALL = """
import errno, os, resource, sys
import anyio
from broker.upstreams.server_config import ServerConfig
from broker.upstreams.server_process import end_process, start_process

async def main(amount):
    resource.setrlimit(resource.RLIMIT_NOFILE, (amount, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    servers = []
    try:
        while True:
            servers.append(await start_process(ServerConfig(command="cat")))
    except OSError as error:
        assert error.errno == errno.EMFILE
    for file in [os.dup(0) for _ in range(13)]:
        os.close(file)
    for server in servers:
        await end_process(server)
    print(bool(servers))

for amount in range(40, 44):
    anyio.run(main, amount, backend=sys.argv[1])
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_servers_leave_the_files_that_a_run_opens(backend):
    command = [sys.executable, "-c", TAKE_ALL, backend]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603  # ours
    assert (finished.stdout, finished.stderr) == ("True\n" * 4, "")
