from __future__ import annotations

import subprocess
import sys

TOGETHER = """
import sys, threading
from sandbox.engine import engine
sys.setswitchinterval(1e-6)
ready, made = threading.Barrier(16), []
def ask():
    ready.wait()
    made.append(engine())
threads = [threading.Thread(target=ask) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len({id(one) for one in made}))
"""


def test_threads_that_ask_at_once_get_one_engine():
    finished = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, check=True)  # noqa: S603  # our own interpreter
    assert finished.stdout.strip() == "1"
