"""One recording: what the run depends on, its steps, its calls, how it ended.

Above: reading.py, which makes it of lines that fit together; replay, resume, show. Below: events.py, call_story.py. It
may come from anywhere, so a value that it names is checked when it is loaded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from broker.errors import RecordingError
from broker.recordings.parts import Omitted, load_stored
from broker.recordings.writing import outcome_of, state_of
from codegen.checking.script_text import lines_of
from codegen.plain_text import one_line
from sandbox import Limits
from sandbox.limits import MAX_DEPTH, MIB
from sandbox.perform import check_script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.recordings.call_story import CallStory
    from broker.recordings.events import Begun, Ended, State, Stepped
    from broker.recordings.parts import RecordedDenial, RecordedGrant, RecordedText, Stored
    from sandbox import Outcome

MAX_USED = Limits(
    wall_seconds=86_400,
    cpu_seconds=600,
    memory_bytes=1024 * MIB,
    output_bytes=64 * MIB,
    value_bytes=64 * MIB,
    calls=100_000,
    calls_in_flight=1_000,
    argument_bytes=64 * MIB,
    completion_bytes=64 * MIB,
    depth=MAX_DEPTH,
    steps=1_000_000,
)
"""The most that the script of an imported recording may use here, whatever limits the recording names."""

_FAULT_CHARACTERS = 200

MAX_PRINTED = 4 * MAX_USED.output_bytes
"""Characters that all steps together may have printed; a control character is written as several."""


@dataclass(slots=True, repr=False)
class Recording:
    """A recording whose lines fit together. It is read once: lines that a running run adds later are not in it.

    Times are Unix time in nanoseconds.

    Attributes:
        begun: What the run began with, as its `principal`, `session`, `filename`, `tools`, `policy` and `at`.
        calls: Its calls, by number, in the order in which the script made them.
    """

    begun: Begun
    value: Callable[[str], str | None]
    entry_id: int = 0
    is_imported: bool = False
    listed: State | None = None
    """How the store lists the run; None for a file."""
    steps: list[Stepped] = field(default_factory=list)
    calls: dict[int, CallStory] = field(default_factory=dict)
    grants: list[RecordedGrant] = field(default_factory=list)
    """In the order in which they are numbered."""
    revoked: set[int] = field(default_factory=set)
    uses: Counter[int] = field(default_factory=Counter)
    """How often each grant was used."""
    denials: list[RecordedDenial] = field(default_factory=list)
    ended: Ended | None = None
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """From when to when nothing went on, because the run was interrupted or parked."""
    last_at: int = 0
    line_count: int = 0
    cut: str = ""
    """Where a file was cut short; empty where it was not."""

    def __repr__(self) -> str:
        """Name the run; all that the recording says would be long."""
        return f"<Recording of {self.run_id}: {self.line_count} lines, {len(self.calls)} calls>"

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.begun.run_id

    @property
    def state(self) -> State:
        """How the run stood when this was read. In a file, a run without an outcome is `interrupted`."""
        if self.listed is not None:
            return self.listed
        return "interrupted" if self.outcome is None else state_of(self.outcome)

    @property
    def seconds(self) -> float:
        """How long it ran, without the time that it was interrupted or parked."""
        return max(self.last_at - self.begun.at - self.lain, 0) / 1e9

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None where it has not."""
        return None if self.ended is None else self.read_outcome(self.ended.outcome)

    @property
    def lain(self) -> int:
        """How long it was interrupted or parked, in nanoseconds."""
        return sum(until - since for since, until in self.gaps)

    @property
    def script(self) -> str:
        """The script's text.

        Raises:
            RecordingError: It was not kept, is not there, or is longer than any that was run.
        """
        script = str(self.load(self.begun.script))
        try:
            check_script(script)
        except ValueError as error:
            raise RecordingError(str(error)) from None
        return script

    @property
    def manifest(self) -> dict[str, Any]:
        """The stubs that the script could import.

        Raises:
            RecordingError: They were not kept, are not there, or are not stubs.
        """
        manifest = self.load(self.begun.manifest)
        if not isinstance(manifest, dict) or not all(isinstance(entry, dict) for entry in manifest.values()):
            raise RecordingError("its stubs are not written as a script can import them")
        return manifest

    @property
    def script_lines(self) -> list[str]:
        """The lines of the script, without an empty one behind the last line end."""
        lines = lines_of(self.script)
        return lines if lines[-1] else lines[:-1]

    @property
    def printed(self) -> str:
        """All that it has printed, on both streams.

        Raises:
            RecordingError: It was not kept, or is not there.
        """
        return self.text_of(self._printed)

    @property
    def stdout(self) -> str:
        """What it has printed on stdout; raises as `printed`."""
        return self.text_of(piece for piece in self._printed if piece.stream == "stdout")

    @property
    def stderr(self) -> str:
        """What it has printed on stderr; raises as `printed`."""
        return self.text_of(piece for piece in self._printed if piece.stream == "stderr")

    @property
    def _printed(self) -> Iterator[RecordedText]:
        for step in self.steps:
            yield from step.printed
        if self.ended is not None:
            yield from self.ended.printed

    def text_of(self, printed: Iterable[RecordedText]) -> str:
        """Return printed text.

        Raises:
            RecordingError: It was not kept, is not there, or is more than a script may print: many pieces may name one
                text.
        """
        texts = []
        room = MAX_PRINTED
        for piece in printed:
            texts.append(str(self.load(piece.text)))
            room -= len(texts[-1])
            if room < 0:
                raise RecordingError(f"it has printed more than the {MAX_PRINTED:,} characters that are allowed")
        return "".join(texts)

    @property
    def limits(self) -> Limits:
        """The limits of the run; those of an imported recording are cut to `MAX_USED`.

        Raises:
            RecordingError: They are not limits of ours.
        """
        whole = {name for name, kind in Limits.__annotations__.items() if kind == "int"}
        try:
            said = Limits(
                **{name: int(value) if name in whole else value for name, value in self.begun.limits.items()}  # type: ignore[arg-type]
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise RecordingError(f"its limits are not ours: {one_line(str(error), _FAULT_CHARACTERS)}") from None
        if not self.is_imported:
            return said
        return Limits(**{name: min(value, getattr(MAX_USED, name)) for name, value in asdict(said).items()})

    @property
    def has_content(self) -> bool:
        """Whether it holds what a replay needs."""
        return self.begun.mode == "full"

    @property
    def waits(self) -> bool:
        """Whether a call of it waits for somebody to allow it."""
        return any(
            story.asked is not None and not story.is_over and story.sent is None and story.denied is None
            for story in self.calls.values()
        )

    def load(self, stored: Stored) -> Any:
        """Return a value.

        Raises:
            RecordingError: It was not kept, or is not there.
        """
        return load_stored(stored, self.value)

    def read_outcome(self, stored: Stored) -> Outcome | None:
        """Return a stored outcome; None where it was not kept.

        Raises:
            RecordingError: It is not an outcome.
        """
        if isinstance(stored, Omitted):
            return None
        try:
            return outcome_of(self.load(stored))
        except ValueError as error:
            raise RecordingError(str(error)) from None
