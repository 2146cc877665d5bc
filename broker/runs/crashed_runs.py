"""Resumes, in the background, runs that ended with their process.

Above: broker.py, which says when. Below: the recorder, which knows them, and sessions. Nobody waits for such a run: its
result is kept until the client comes that had asked for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.lowlevel

from broker.errors import BrokerError
from broker.logging import logger
from sandbox import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.recordings.journal.recorder import Recorder
    from broker.sessions import Session


async def resume_crashed(
    run_id: str,
    recorder: Recorder,
    session_of: Callable[[str, str], Session],
) -> None:
    """Go on with a run, in the session that `session_of` returns for the name and the principal that it began with.

    Never raises for what is wrong with the recording, the store, the sandbox or a server that its script may call: that
    is logged, and the run stays as it is.
    """
    await anyio.lowlevel.checkpoint()  # a broker that was closed meanwhile resumes nothing
    try:
        begun = recorder.unfinished.begun(run_id)
        session = session_of(begun.session, begun.principal)
        result = await session.resume(run_id)
        recorder.resumptions.keep(result, begun.principal)
    except (BrokerError, SandboxError) as error:
        logger().warning("a run was not resumed", run=run_id, reason=str(error))
    else:
        logger().info("a run was resumed", run=run_id, outcome=result.outcome)
