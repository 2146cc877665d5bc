"""Opens the user's store and its recordings for commands, and reads single recordings.

Above: the commands about what was recorded. Below: store.py, recorded_runs.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from broker.cli.terminal import Problem, local_time
from broker.errors import BrokerError, StoreError
from broker.recorded_runs import RecordedRuns
from broker.recordings.files import read_recording
from broker.recordings.keeping.recordings import Recordings
from broker.store import Store
from broker.store_files import is_there, user_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.recordings.keeping.entries import RecordingEntry
    from broker.recordings.recording import Recording

STYLES = {"completed": "green", "raised": "red", "stopped": "red", "parked": "yellow", "interrupted": "yellow"}
"""How the states of runs are shown."""


@contextmanager
def open_store() -> Iterator[Store]:
    """Open the user's store where there is one.

    Raises:
        Problem: There is none, or it cannot be used, also for what the block asks of it.
    """
    if not is_there(user_store()):
        raise Problem(f"nothing was recorded yet: there is no {user_store()}", "`codemode run` and `serve` record.")
    try:
        with Store.in_user_folder(for_reading=True) as store:
            yield store
    except StoreError as error:
        raise Problem(str(error)) from None


@contextmanager
def open_recordings(*, makes_store: bool = False) -> Iterator[RecordedRuns]:
    """Open the user's recordings as programs have them; else as `open_kept`."""
    with open_kept(makes_store=makes_store) as kept:
        yield RecordedRuns(kept, principal=None)


@contextmanager
def open_kept(*, makes_store: bool = False) -> Iterator[Recordings]:
    """Open the user's recordings; where there is no store there are none, unless the command `makes_store`.

    Raises:
        Problem: They cannot be used, or what the block asks of them cannot be done.
    """
    try:
        with Store.in_user_folder(for_reading=not makes_store) as store, Recordings(store) as kept:
            yield kept
    except BrokerError as error:
        raise Problem(str(error)) from None


def read_target(name: str) -> Recording:
    """Read a recording from a file or the store."""
    if name and (Path(name).exists() or name.endswith(".jsonl")):
        return read_recording(Path(name))
    with open_recordings() as recordings:
        return recordings.get(name)


def whole_id(store: Store, name: str) -> str:
    """Return the id of a recorded run that is named by its beginning or as `last`; any other name as it is.

    Raises:
        RecordingError: Several begin so.
    """
    found = Recordings(store).named(name)
    return name if found is None else found.run_id


def as_json(entry: RecordingEntry) -> dict[str, object]:
    """Return what is listed of a recording; its number and who carries it on are the store's own."""
    return {key: value for key, value in asdict(entry).items() if key not in {"id", "owner"}}


def when(nanoseconds: int) -> str:
    """Return a time of a recording as people here read it."""
    return local_time(datetime.fromtimestamp(nanoseconds / 1e9, UTC))
