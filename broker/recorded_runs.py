"""The recorded runs of a store, for programs: listed, read, exported, imported, removed.

Above: broker.py, the command line, embedding programs. Below: `broker.recordings.keeping`. Whose runs are seen is
decided as `Session.resume` decides it: those of one principal that began here, unless all are asked for.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Self

from broker.api_arguments import check_count, check_store, check_texts
from broker.errors import RecordingError
from broker.named_file import names_a_folder
from broker.recordings.keeping.recordings import STATES, Recordings
from broker.recordings.keeping.transfer import export, exported, import_file, load_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.recordings.events import State
    from broker.recordings.keeping.entries import RecordingEntry
    from broker.recordings.recording import Recording
    from broker.store import Store


class RecordedRuns:
    """The recordings of the runs that one principal began, or of all. Made by `Broker.recordings` or `in_store`.

    A `run` is named by its id, the beginning of it, or `last`: the run that began last. The methods read the store
    inline and may be called from any thread; `get` of a run with thousands of calls takes some tenths of a second.

    Raises:
        RecordingError: Each method that takes a run: there is none, or several begin so. Others' runs count as none.
        TypeError: The same: what names it is no text.
        StoreError: Each method: the store cannot be used.
    """

    def __init__(self, recordings: Recordings, principal: str | None) -> None:
        """See the recordings of a principal, or all when None."""
        self._recordings = recordings
        self._principal = principal

    @classmethod
    def in_store(cls, store: Store, *, principal: str = "", any_principal: bool = False) -> Self:
        """Return those in a store, also of other processes; arguments as in `Broker.recordings`.

        Raises:
            StoreError: The store cannot be used.
            ValueError: Both a principal and all are asked for.
            TypeError: It is no `Store`, or `principal` no text.
        """
        check_store(store)
        return cls(Recordings(store), seen(principal, any_principal=any_principal))

    def list(self, *, limit: int | None = None, states: Collection[State] | None = None) -> Sequence[RecordingEntry]:
        """List the runs, newest first.

        Args:
            limit: How many at most.
            states: Only runs that stand so: `running`, `interrupted`, `parked`, `completed`, `raised`, `stopped`.

        Raises:
            ValueError: A state is none of these, or the limit is no whole number from 0.
        """
        wanted = STATES if states is None else states
        _check_states(wanted)
        check_count(limit=limit)
        return self._recordings.entries(limit, states=wanted, principal=self._principal)

    def find(self, run: str) -> RecordingEntry:
        """Return how a run is listed, without reading its recording."""
        if not isinstance(run, str):
            raise TypeError(
                f"a run is named by its id, as entry.run_id or result.run_id, not by a {type(run).__name__}"
            )
        return self._recordings.find(run, self._principal)

    def get(self, run: str) -> Recording:
        """Read the recording of a run, whole: it can be used when it is removed or the store is closed.

        Raises:
            RecordingError: It is damaged; the text names the line.
        """
        return load_whole(self._recordings, self.find(run))

    def lines(self, run: str) -> Iterator[str]:
        """Return the lines of the file that `export` writes, each with its newline; raises as that."""
        return exported(self._recordings, self.find(run))

    def export(self, run: str, path: Path | str) -> Path:
        """Write the recording of a run to a file, whole or not at all; in a folder, it is named by the run.

        Returns:
            The file. `read_recording` and `codemode replay` read it.

        Raises:
            RecordingError: It cannot be written, or the recording is damaged. A path that ends with a slash names a
                folder, which has to be there.
        """
        entry, target = self.find(run), Path(path)
        if target.is_dir():
            target /= f"{entry.run_id}.jsonl"
        elif names_a_folder(path):
            raise RecordingError(f"{path}: there is no folder {target}")
        export(self._recordings, entry, target)
        return target

    def import_file(self, path: Path | str) -> Recording:
        """Take a recording over from a file. What was allowed in it is not allowed here.

        Raises:
            RecordingError: The file cannot be read or was changed, its run is recorded already, or a principal asks: an
                imported recording only says whose it is.
        """
        if self._principal is not None:
            raise RecordingError(f"{path}: imported recordings belong to no principal; import with any_principal=True.")
        # What a process has begun counts as interrupted when it closes this: nothing else is.
        with Recordings(self._recordings.store, self._recordings.settings) as own:
            return import_file(own, Path(path))

    def remove(self, *runs: str) -> int:
        """Remove recordings, all of these or none, also of runs that were interrupted or are parked; return how many.

        Raises:
            RecordingError: One of them is running.
        """
        with self._recordings.together():
            entries = {entry.id: entry for entry in map(self.find, runs)}
            for entry in entries.values():
                if entry.state == "running":
                    raise RecordingError(f"{entry.run_id} is running; it can be removed when it has ended.")
            self._recordings.remove([*entries])
        return len(entries)


def seen(principal: str, *, any_principal: bool) -> str | None:
    """Return whose runs are seen; None for everybody's.

    Raises:
        ValueError: Both are asked for.
        TypeError: The principal is no text.
    """
    check_texts(principal=principal)
    if principal and any_principal:
        raise ValueError("any_principal=True is for the runs of all; leave the principal out")
    return None if any_principal else principal


def _check_states(given: object) -> None:
    if isinstance(given, Collection) and not isinstance(given, str) and all(one in STATES for one in given):
        return
    raise ValueError(f"states are a collection of {', '.join(map(repr, STATES))}, not {given!r}")
