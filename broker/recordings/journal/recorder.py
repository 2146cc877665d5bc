"""What an execution is given to have its run recorded, or taken up again: the run's conditions and its journal.

Above: execution.py. Below: run_journal.py. Without recordings the conditions are drawn all the same.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from broker.errors import RecordingError, StoreError
from broker.logging import logger
from broker.recordings.journal.interruption import interrupted, store_error
from broker.recordings.journal.leave import grants_to_record, numbers_of
from broker.recordings.journal.repeating import present_request
from broker.recordings.journal.resuming import check_resumable
from broker.recordings.journal.retracing import past_of
from broker.recordings.journal.run_journal import Beginning, RunJournal, UnrecordedRun
from broker.recordings.journal.take_ups import TakeUps
from broker.recordings.keeping.transfer import load
from broker.recordings.parts import RecordedTool
from broker.recordings.redaction import Redaction
from sandbox import Past, SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from broker.authorization.desk import ConsentDesk
    from broker.authorization.grants import Held
    from broker.recordings.journal.resuming import UnknownOutcome
    from broker.recordings.keeping.entries import Entry
    from broker.recordings.keeping.recordings import Recordings
    from broker.recordings.recording import Recording
    from broker.tools.catalog import CatalogEntry
    from sandbox import Limits


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """One run, from its beginning or from where it was interrupted.

    Attributes:
        run_id: Names it wherever it is spoken of.
        seed: Where its random numbers come from.
        wall_ns: Unix time at which its clock starts.
        journal: Told of everything; keeps nothing where the run is not recorded.
        past: What happened before, in a run that is resumed.
        before: The whole recording of that.
    """

    run_id: str
    seed: int
    wall_ns: int
    journal: RunJournal | UnrecordedRun
    past: Past = field(default_factory=Past)
    before: Recording | None = None

    def __enter__(self) -> Self:
        """Return the run."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Leave the run; one that has not ended can be resumed.

        Raises:
            RunInterruptedError: It could not be written down to its end, or there was no sandbox for it any more.
        """
        if not isinstance(self.journal, RunJournal):
            return
        fault: StoreError | SandboxError | None = store_error(error)
        if isinstance(error, SandboxError):
            fault = error
            self.journal.cut_off()
        try:
            self.journal.close()
        except StoreError as last:
            fault = fault or (last if error is None else None)
        if fault is not None:
            raise interrupted(self.journal.recordings, self.run_id, fault) from error


class Recorder:
    """Begins recordings with what this broker knows of itself."""

    def __init__(self, recordings: Recordings | None = None, secret_values: Iterable[str] = ()) -> None:
        """Take where to record, None for nowhere, and what must not be written down."""
        self.recordings = recordings
        self.secret_values = frozenset(secret_values)
        self.take_ups = TakeUps()

    @property
    def unknown_outcome(self) -> UnknownOutcome:
        """What the config says is done about a call of unknown outcome."""
        return "fail" if self.recordings is None else self.recordings.settings.unknown_outcome

    @property
    def keeps_content(self) -> bool:
        """Whether runs that begin now can be taken up again."""
        return self.recordings is not None and self.recordings.settings.mode == "full"

    def id_of(self, name: str) -> str:
        """Return the whole id of a run.

        Raises:
            RecordingError: There is none of that name.
        """
        return name if self.recordings is None else self.recordings.find(name).run_id

    def begin(
        self,
        run_id: str,
        script: str,
        *,
        filename: str,
        manifest: Mapping[str, Any],
        limits: Limits,
        image: str,
        described: Iterable[tuple[CatalogEntry, bool, Iterable[str]]],
        desk: ConsentDesk,
    ) -> RecordedRun:
        """Begin a run.

        Raises:
            StoreError: It cannot be written down; nothing has been run.
        """
        seed, wall_ns = secrets.randbits(64), time.time_ns()
        if self.recordings is None or self.recordings.settings.mode == "off":
            return RecordedRun(run_id=run_id, seed=seed, wall_ns=wall_ns, journal=UnrecordedRun())
        tools = [_tool(*one) for one in described]
        beginning = Beginning(
            run_id=run_id,
            filename=filename,
            script=script,
            manifest=manifest,
            seed=seed,
            wall_ns=wall_ns,
            limits=limits,
            image=image,
            tools=tools,
            policy=desk.policy.config.model_dump(mode="json", by_alias=True),
            grants=grants_to_record(desk.book, tools),
            denials=desk.book.denials,
            principal=desk.principal,
            session=desk.session,
            request=present_request(),
            versions=_versions(),
        )
        journal = RunJournal.begin(self.recordings, Redaction(self.secret_values), beginning)
        return RecordedRun(run_id=run_id, seed=seed, wall_ns=wall_ns, journal=journal)

    def is_open(self, run_id: str, principal: str) -> bool:
        """Tell whether a run of a principal is recorded here that was interrupted or is parked."""
        return any(recording.begun.run_id == run_id for recording in self._open_of(principal))

    def requested(self, request: str, within_seconds: float | None = None) -> str | None:
        """Return the run that a client goes on with that repeats its request: one that is parked or has crashed.

        So it is where that was taken up already, whatever has become of it: a second run would make its calls twice.
        With `within_seconds`, only if it began so lately.
        """
        if self.recordings is None:
            return None
        try:
            found = self.recordings.requested(request, within_seconds)
        except StoreError as error:
            # A run that cannot be found cannot be begun either: its first line would not be written.
            logger().error("a repeated request cannot be looked for", problem=str(error))
            return None
        return found[0].run_id if found else None

    def forget_request(self, run_id: str) -> None:
        """Take the next request like the one that began a run for a new one: its client knows how that ended."""
        if self.recordings is not None:
            with suppress(RecordingError, StoreError):  # it is told once more
                self.recordings.forget_request(run_id)

    def take_back(self, runs: Iterable[str], held: Held) -> None:
        """Write into runs that wait to go on that a grant was taken back, so that none of them brings it back.

        Raises:
            StoreError: It cannot be written down.
        """
        if self.recordings is None:
            return
        for run_id in runs:
            with suppress(RecordingError):  # it was removed, or cannot go on
                entry, recording = self.find(run_id)
                self.recordings.append_revoked(entry, numbers_of(recording, held))

    def waiting(self, principal: str) -> list[str]:
        """Return the runs of a principal that are parked, or waited for somebody when their process died."""
        found = self._open_of(principal)
        return [recording.begun.run_id for recording in found if recording.has_content and recording.waits]

    def crashed(self) -> list[str]:
        """Return the runs that ended with their process, not on purpose, and that can go on."""
        entries = [] if self.recordings is None else self.recordings.entries()
        return [one.run_id for one in entries if one.has_crashed and one.mode == "full" and not one.is_imported]

    def _open_of(self, principal: str) -> Iterator[Recording]:
        """Yield the recordings of a principal's open runs; an imported one only says whose it is."""
        if self.recordings is None:
            return
        for entry in self.recordings.open_entries():
            if entry.is_imported:
                continue
            try:
                recording = load(self.recordings, entry)
            except RecordingError:
                continue  # `codemode runs` says so
            if recording.begun.principal == principal:
                yield recording

    def find(self, name: str) -> tuple[Entry, Recording]:
        """Return the recording of a run.

        Raises:
            RecordingError: There is none, or it makes no sense.
        """
        if self.recordings is None:
            raise RecordingError("this broker keeps no recordings")
        entry = self.recordings.find(name)
        return entry, load(self.recordings, entry)

    def resume(self, name: str, *, image: str, desk: ConsentDesk) -> RecordedRun:
        """Take up a run that was interrupted or is parked, with the grants of `desk` beside its own.

        Raises:
            RecordingError: There is none, it is neither, or it cannot go on here; the text says why.
            StoreError: It cannot be written down.
        """
        entry, recording = self.find(name)
        if self.recordings is None:
            raise RecordingError("this broker keeps no recordings")
        check_resumable(recording, image)
        self.recordings.claim(entry)
        try:
            # Read again: until it was claimed, another process may have taken it further.
            return self._taken_up(self.recordings, load(self.recordings, entry), desk)
        except BaseException:
            with suppress(StoreError):
                self.recordings.settle(entry.id, "interrupted", entry.calls)
            raise

    def _taken_up(self, recordings: Recordings, recording: Recording, desk: ConsentDesk) -> RecordedRun:
        begun = recording.begun
        return RecordedRun(
            run_id=begun.run_id,
            seed=begun.seed,
            wall_ns=begun.wall_ns,
            journal=RunJournal.resume(
                recordings,
                Redaction(self.secret_values),
                recording,
                grants_to_record(desk.book, begun.tools),
            ),
            past=past_of(recording, goes_on=True),
            before=recording,
        )


def _tool(entry: CatalogEntry, is_trusted: bool, labels: Iterable[str]) -> RecordedTool:  # noqa: FBT001  # as it is stored
    spec = entry.spec
    return RecordedTool(
        server=spec.server,
        tool=spec.name,
        function=entry.python_name,
        digest=spec.digest,
        read_only=spec.annotations.read_only,
        destructive=spec.annotations.destructive,
        idempotent=spec.annotations.idempotent,
        open_world=spec.annotations.open_world,
        is_trusted=is_trusted,
        labels=tuple(sorted(labels)),
    )


@cache
def _versions() -> Mapping[str, str]:
    return {"codemode-broker": version("codemode-broker"), "wasmtime": version("wasmtime")}
