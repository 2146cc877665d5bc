"""An edited script on the recorded answers, as far as they go.

Above: `codemode replay --script`. Below: the sandbox, a journal in memory. An edited script takes other steps, so its
calls are matched by function and arguments, the first equal one with the first recorded answer, and so on. Answers take
no time, and where the script sleeps its clock moves on at once.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from broker.recordings.journal.beginning import Beginning
from broker.recordings.journal.run_journal import RunJournal
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.keeping.transfer import load_whole
from broker.recordings.redaction import Redaction
from broker.recordings.replay.compare import call_key
from broker.store import Store
from sandbox import Failed, Returned, SkippingStopwatch

if TYPE_CHECKING:
    from broker.recordings.recording import Recording
    from sandbox import Call, Completion, Sandbox


class RecordedAnswers:
    """The answers in a recording, each given once."""

    def __init__(self, recording: Recording) -> None:
        """Take the recording."""
        self._answers: dict[str, deque[Completion]] = defaultdict(deque)
        for story in recording.calls.values():
            answer = story.answer
            if answer is not None:
                self._answers[call_key(story.function, story.arguments)].append(_completion(answer))

    def take(self, call: Call) -> Completion | None:
        """Return the next recorded answer to an equal call; None where there is none left."""
        answers = self._answers.get(call_key(call.function, call.arguments))
        return answers.popleft() if answers else None


async def rerun(sandbox: Sandbox, recording: Recording, script: str, filename: str | None = None) -> Recording:
    """Run another script on the answers of a recording; a call that it does not answer fails in the script.

    Tracebacks call the script by `filename`, or as the recorded one.

    Raises:
        RecordingError: The recording does not hold what is needed.
    """
    answers = RecordedAnswers(recording)

    async def answer(call: Call) -> Completion:
        lacks = f"{call.function} is not answered by the recording with these arguments"
        return answers.take(call) or Failed("ToolUnavailableError", f"{lacks}; `codemode replay --live` would send it.")

    begun = recording.begun
    with Store() as store, Recordings(store) as recordings:
        beginning = Beginning(
            run_id=begun.run_id,
            filename=filename or begun.filename,
            script=script,
            manifest=recording.manifest,
            seed=begun.seed,
            wall_ns=begun.wall_ns,
            limits=recording.limits,
            image=sandbox.image_digest,
            tools=begun.tools,
            policy=None,
            versions={},
        )
        await sandbox.run(
            script,
            answer=answer,
            manifest=beginning.manifest,
            filename=beginning.filename,
            limits=beginning.limits,
            seed=beginning.seed,
            wall_ns=beginning.wall_ns,
            stopwatch=SkippingStopwatch(),
            journal=RunJournal.begin(recordings, Redaction(), beginning),
        )
        return load_whole(recordings, recordings.find("last"))


def _completion(result: dict[str, object]) -> Completion:
    error = result.get("error")
    if isinstance(error, dict):
        return Failed(str(error["kind"]), str(error["message"]), dict(error.get("details", {})))
    return Returned(result.get("value"))
