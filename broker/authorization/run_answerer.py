"""Who is asked about one run: the person behind its request, or else the answerer of its session.

Above: run_desk.py asks, tool_calls.py shows forms of servers; parking.py and the MCP server say who is behind a
request. Below: forms.py, question_box.py. One thing is asked at a time.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from broker.authorization.forms import FormReply, UnshownError
from broker.authorization.question_box import Later
from broker.callbacks import NoReplyError, awaited, failing_alone
from broker.logging import logger
from broker.texts import call_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.authorization.desk import ConsentDesk
    from broker.authorization.forms import Form
    from broker.authorization.questions import Answerer

MAX_FORMS = 30
"""How many forms a person is shown during one run."""

_ANSWERER: ContextVar[Answerer | None] = ContextVar("_ANSWERER", default=None)


@contextmanager
def answering(answerer: Answerer) -> Iterator[None]:
    """Let runs that begin in a block, also in tasks that it starts, ask this one instead of their session's answerer.

    Who can be asked differs from request to request of one session: one client can show a form, another cannot.
    """
    token = _ANSWERER.set(answerer)
    try:
        yield
    finally:
        _ANSWERER.reset(token)


class RunAnswerer:
    """Asks whoever can be asked about one run, who may be nobody."""

    def __init__(self, desk: ConsentDesk) -> None:
        """Take who is behind the present request; `desk` has the session's answerer."""
        self._desk = desk
        self._own = _ANSWERER.get()
        self._forms = 0
        self._declined: list[Form] = []

    @cached_property
    def turn(self) -> anyio.Lock:
        """Held while a question or a form is open."""
        return anyio.Lock()

    @property
    def present(self) -> Answerer | None:
        """Who is asked; None where nobody is there."""
        return self._own or self._desk.answerer

    @property
    def name(self) -> str:
        """The name of whoever is asked, for the audit and the script."""
        return str(getattr(self.present, "name", "") or type(self.present).__name__)

    @property
    def is_away(self) -> bool:
        """Whether whoever is asked is not there yet, so that asking means waiting."""
        return self.present is None or isinstance(self.present, Later)

    @property
    def comes_back(self) -> bool:
        """Whether a call that nobody answers may wait until somebody comes."""
        answerer = self.present
        return self._desk.parks if answerer is None else bool(getattr(answerer, "comes_back", False))

    @property
    def timeout_seconds(self) -> float:
        """How long a person has for an answer."""
        return self._desk.policy.config.answer_timeout_seconds

    @property
    def shows_forms(self) -> bool:
        """Whether whoever is asked can show a form of a server."""
        return callable(getattr(self.present, "fill", None))

    async def fill(self, form: Form) -> FormReply:
        """Show a server's form when no question is open; a late reply, or anything but a reply, counts as no answer.

        Raises:
            UnshownError: The person has declined this form before, or has been shown enough of them.
        """
        async with self.turn:
            if any(_ask_alike(form, declined) for declined in self._declined):
                raise UnshownError(call_texts.DECLINED_BEFORE)
            if self._forms == MAX_FORMS:
                raise UnshownError(call_texts.forms_enough(MAX_FORMS))
            self._forms += 1
            reply = await self._show(form)
            if reply.action == "decline":
                self._declined.append(form)
            return reply

    async def _show(self, form: Form) -> FormReply:
        fill = getattr(self.present, "fill", None)
        try:
            with failing_alone(), anyio.move_on_after(form.timeout_seconds) as scope:
                reply = await awaited("fill", fill(form)) if callable(fill) else None
                if isinstance(reply, FormReply) and anyio.current_time() < scope.deadline:
                    return reply
                if not isinstance(reply, FormReply):
                    kind = type(reply).__name__
                    logger().error("an answerer fills a form with a FormReply; this one did not", returned=kind)
        except NoReplyError as error:
            logger().warning("the answerer failed", reason=str(error))
        except Exception:  # noqa: BLE001  # as of questions
            logger().exception("the answerer failed")
        return FormReply("cancel")


def _ask_alike(one: Form, other: Form) -> bool:
    """Tell whether two forms ask a person for the same, whatever their server calls the request."""
    return (one.server, one.message, one.schema, one.host) == (other.server, other.message, other.schema, other.host)
