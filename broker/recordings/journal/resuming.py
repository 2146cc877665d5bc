"""Resumes a run that was interrupted or is parked: gives back its grants, decides about calls of unknown outcome.

Above: execution.py. Below: recording.py. Calls that were answered are not repeated. One that was sent and not answered
may have taken effect, so it is sent again only if somebody says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from broker.authorization.model_calls import TOOL
from broker.callbacks import awaited, failing_alone
from broker.errors import RecordingError
from broker.logging import logger
from broker.recordings.journal.recorded_grants import denials_given_back, grants_given_back
from broker.texts import call_texts
from sandbox import Failed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.authorization.run_desk import RunDesk
    from broker.recordings.call_story import CallStory
    from broker.recordings.journal.run_journal import RunJournal
    from broker.recordings.parts import RecordedTool
    from broker.recordings.recording import Recording
    from broker.recordings.settings import UnknownOutcome
    from sandbox import Call, Completion


@dataclass(frozen=True, slots=True)
class UnknownCall:
    """A call that was sent and whose answer is not known.

    Attributes:
        name: `server.tool`; of an imported run, as its script names it.
        arguments: What it was sent with.
        sent_at: Unix time in nanoseconds.
        is_idempotent: Whether its server says, and the operator trusts it, that a repetition changes nothing more.
    """

    name: str
    arguments: dict[str, Any]
    sent_at: int
    is_idempotent: bool


class UnknownAnswerer(Protocol):
    """Whoever can say whether a call is sent again."""

    async def __call__(self, call: UnknownCall) -> bool:
        """Return True to send it again, False to tell the script that its outcome is not known.

        Anything else counts as False, and so does an error of this function; both are logged.
        """


@dataclass(frozen=True)
class UnknownCalls:
    """Decides about the calls of a resumed run whose outcome is not known.

    Attributes:
        recording: The run.
        policy: What is done.
        ask: Who is asked.
        parks: Whether such a call waits if there is nobody to ask; otherwise it fails in the script.
    """

    recording: Recording
    policy: UnknownOutcome
    ask: UnknownAnswerer | None
    parks: bool = False

    def around(
        self, answer: Callable[[Call], Awaitable[Completion | None]], give_up: Callable[[Call], None]
    ) -> Callable[[Call], Awaitable[Completion | None]]:
        """Return a function that answers calls as `answer` does, but sends those of unknown outcome only if allowed.

        `give_up` is told of the others.
        """

        async def answer_known(call: Call) -> Completion | None:
            story = self.recording.calls.get(call.id)
            if story is None or not story.is_unknown:
                return await answer(call)
            if self.policy == "ask" and self.ask is None and self.parks:
                return None
            if not await self._is_repeated(story):
                give_up(call)
                return Failed("ToolOutcomeUnknown", call_texts.cut_off(call.function))
            return await answer(call)

        return answer_known

    async def _is_repeated(self, story: CallStory) -> bool:
        if story.sent is None or story.function == TOOL:
            return True  # a model that is asked again changes nothing
        tool = next((one for one in self.recording.begun.tools if one.function == story.function), None)
        # What an imported recording says of a tool, and which one it names, is nobody's word here.
        is_imported = self.recording.is_imported
        is_idempotent = tool is not None and not is_imported and _is_idempotent(tool)
        if self.policy == "repeat":
            return is_idempotent
        if self.policy == "fail" or self.ask is None:
            return False
        name = story.function if is_imported else f"{story.sent.server}.{story.sent.tool}"
        arguments = story.arguments
        return await _says_yes(self.ask, UnknownCall(name, arguments, story.sent.at, is_idempotent))


def check_resumable(recording: Recording, image: str) -> None:
    """Refuse a run that cannot be resumed here.

    Raises:
        RecordingError: It was recorded on another image, or without its content.
    """
    begun = recording.begun
    if not recording.has_content:
        raise RecordingError(
            f"{begun.run_id} was recorded without its content (mode metadata), so it cannot be resumed."
        )
    if begun.image != image:
        raise RecordingError(
            f"{begun.run_id} began on the guest image {begun.image[:12]}…, and this one is {image[:12]}…: the script "
            "might take other steps here. Resume it with the version of codemode and the image that began it "
            f"({begun.versions.get('codemode-broker', 'unknown')})."
        )


def give_back(recording: Recording, desk: RunDesk, journal: RunJournal) -> None:
    """Give a resumed run what people had said: what is left of its grants, its denials, and answers to its calls."""
    for given in grants_given_back(recording):
        journal.given_back(desk.give_back(given.grant, of=given.of, by=given.by), given.number)
    for denial in denials_given_back(recording):
        desk.deny(denial)
    for story in recording.calls.values():
        if (
            story.said is not None
            and story.answered is None
            and (story.said.allow is not True or not recording.is_imported)
        ):
            desk.remember(story.said)


async def _says_yes(ask: UnknownAnswerer, call: UnknownCall) -> bool:
    """Ask whether a call is sent again; anything but a clear yes is a no, as the text "no" of a form."""
    try:
        with failing_alone():
            said: object = await awaited("ask_unknown", ask(call))
    except Exception:  # noqa: BLE001  # whatever is wrong with who is asked, they have not said yes
        logger().exception("ask_unknown failed, so the call is not sent again", call=call.name)
        return False
    if not isinstance(said, bool):
        logger().error(
            "ask_unknown returns True or False; this one did not, so the call is not sent again",
            call=call.name,
            returned=type(said).__name__,
        )
    return said is True


def _is_idempotent(tool: RecordedTool) -> bool:
    return tool.is_trusted and bool(tool.idempotent or tool.read_only)
