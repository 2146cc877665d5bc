"""A box of questions and of servers' forms that wait until somebody comes to answer them.

Above: parking.py, http_answers.py and embedding programs, which show what is in the box and put the answers in.
Below: answerable.py, questions.py, forms.py. The desk takes a question or a form back when its time is over.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.answerable import Answerable
from broker.api_arguments import check_kind, check_texts, check_told
from broker.authorization.forms import FormReply
from broker.authorization.questions import answers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.authorization.forms import Form
    from broker.authorization.questions import Answer, Question


@dataclass(eq=False)
class OpenQuestion(Answerable["Sequence[Answer]"]):
    """A question in a box; it stays there until the run has taken the answer.

    Attributes:
        id: Hard to guess, so that only those who were shown the question know it.
        run: The run that waits.
        question: What is asked.
    """

    id: str
    run: str
    question: Question

    def reply(self, answers: Sequence[Answer]) -> bool:
        """Answer it; return whether this was the first answer, which counts.

        Raises:
            TypeError: It is no list of answers; the question stays open.
            RuntimeError: This is another thread than that of the event loop, which would not notice.
        """
        given = answers_of(answers)
        if given is None:
            raise TypeError(f"a question is answered by a list of Grant, Denial and Verdict, not by {answers!r}")
        return super().reply(given)


@dataclass(eq=False)
class OpenForm(Answerable[FormReply]):
    """A form in a box: what a server asks while a call of its tool is open, which cannot be put off.

    Attributes:
        id: Hard to guess, so that only those who were shown the form know it.
        form: What is asked.
    """

    id: str
    form: Form

    def reply(self, answer: FormReply, /) -> bool:
        """Answer it; return whether this was the first answer, which counts.

        Raises:
            TypeError: It is no `FormReply`; the form stays open.
            ValueError: Its content does not fit the form, which stays open; the text says why.
            RuntimeError: This is another thread than that of the event loop, which would not notice.
        """
        check_kind(answer, FormReply, "a form is answered by a FormReply, as FormReply('accept', {'name': 'Anna'})")
        fault = self.form.fault(answer.content) if answer.action == "accept" else None
        if fault is not None:
            raise ValueError(f"content: {fault}")
        return super().reply(answer)


class QuestionBox:
    """An answerer that keeps its questions, and the forms of servers, until they are answered."""

    def __init__(
        self,
        name: str = "later",
        *,
        on_open: Callable[[OpenQuestion], None] | None = None,
        on_form: Callable[[OpenForm], None] | None = None,
    ) -> None:
        """Begin empty; `name` is who answers, for the audit. The callbacks get each question and each form.

        Raises:
            TypeError: `name` is no text, or a callback no plain function.
        """
        check_texts(name=name)
        check_told(on_open=on_open, on_form=on_form)
        self.name = name
        self.on_open = on_open
        self.on_form = on_form
        self.wake: Callable[[OpenQuestion], None] | None = None
        """Told first: whoever waits for the runs of a session. The same for all sessions of the box."""
        self._open: dict[str, OpenQuestion] = {}
        self._forms: dict[str, OpenForm] = {}

    @property
    def forms(self) -> tuple[OpenForm, ...]:
        """The forms that wait, oldest first."""
        return tuple(asked for asked in self._forms.values() if not asked.is_answered)

    @property
    def open(self) -> tuple[OpenQuestion, ...]:
        """The questions that wait, oldest first."""
        return tuple(asked for asked in self._open.values() if not asked.is_answered)

    def of_run(self, run: str) -> OpenQuestion | None:
        """Return the open question of a run; it has at most one."""
        return next((asked for asked in self.open if asked.run == run), None)

    def reply(self, question_id: str, answers: Sequence[Answer]) -> bool:
        """Answer a question; tell whether it was still open.

        Raises:
            TypeError: As of `OpenQuestion.reply`; also where `question_id` is no text.
            RuntimeError: As of `OpenQuestion.reply`.
        """
        check_texts(question_id=question_id)
        asked = self._open.get(question_id)
        return asked is not None and asked.reply(answers)

    async def answer(self, question: Question) -> Sequence[Answer]:
        """Keep a question until it is answered or taken back."""
        asked = OpenQuestion(f"q_{secrets.token_hex(16)}", question.calls[0].caller.run, question)
        self._open[asked.id] = asked
        try:
            for tell in (self.wake, self.on_open):
                if tell is not None:
                    tell(asked)
            return await asked.answer()
        finally:
            del self._open[asked.id]

    async def fill(self, form: Form) -> FormReply:
        """Keep a form until it is answered or taken back."""
        asked = OpenForm(f"f_{secrets.token_hex(16)}", form)
        self._forms[asked.id] = asked
        try:
            if self.on_form is not None:
                self.on_form(asked)
            return await asked.answer()
        finally:
            del self._forms[asked.id]


class Later:
    """The box as an answerer who is not there yet, so that a run that can be resumed is parked instead of waiting.

    Whoever runs it puts its question into the box, and resumes it with the answer. A run that is not recorded waits.
    """

    comes_back = True

    def __init__(self, box: QuestionBox) -> None:
        """Answer from a box."""
        self.name = box.name
        self._box = box

    async def answer(self, question: Question) -> Sequence[Answer]:
        """Wait for the answer."""
        return await self._box.answer(question)

    async def fill(self, form: Form) -> FormReply:
        """Wait for the answer to a form; its call is open, so the run cannot be parked."""
        return await self._box.fill(form)
