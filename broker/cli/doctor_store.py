"""What `codemode doctor` says about the store: where it is, whether it is usable and whole, and how to repair it.

Above: doctor.py. Below: store.py. A store that is not there yet is not made.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from broker.audit import chain
from broker.authorization import kept_grants
from broker.cli.findings import Finding
from broker.errors import StoreError
from broker.recordings.keeping import tables as recordings
from broker.store import Store
from broker.store_files import VARIABLE, is_there, log_of, user_store
from codegen.plain_text import counted
from sandbox.limits import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECK_SECONDS = 5.0
"""How long is looked for damage."""

LEAST_MIB = 100
"""A run may write some megabytes; the log of what is written may become 16."""

_TABLES = (recordings.TABLES, chain.TABLES, kept_grants.TABLES)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ELSEWHERE = f"or set {VARIABLE} to a file elsewhere"


def store_findings() -> Iterator[Finding]:
    """Yield what is found; all that is wrong, each with what to do."""
    path = user_store()
    yield _store_finding(path)
    private = _privacy_finding(path)
    if private is not None:
        yield private
    room = _room_finding(path)
    if room is not None:
        yield room


def _store_finding(path: Path) -> Finding:
    if not is_there(path) and os.access(_nearest(path), os.W_OK | os.X_OK):
        return Finding("store", is_right=True, found=f"{_shown(path)} is made by the first run")
    try:
        with Store(path) as store:
            for tables in _TABLES:
                store.prepare(tables)
            damage = store.first_damage(CHECK_SECONDS)
            said = f"{_shown(path)}, {_size(path)}, {_runs(store)}"
            versions = ", ".join(f"{name} {version}" for name, version in store.versions().items())
    except StoreError as error:
        problem = str(error).replace(str(path), _shown(path))
        return Finding("store", is_right=False, found=problem, what_to_do=_repair(path) if error.is_damaged else "")
    if damage:
        return Finding("store", is_right=False, found=f"{said}; damaged: {damage}", what_to_do=_repair(path))
    whole = "whole" if damage == "" else f"not looked through to its end within {CHECK_SECONDS:g} s"
    return Finding("store", is_right=True, found=f"{said}, {whole}; versions: {versions}")


def _privacy_finding(path: Path) -> Finding | None:
    """Nobody else may put another file in its place, and what root writes beside it its owner cannot read."""
    if sys.platform == "win32" or not os.access(path, os.F_OK):
        return None
    me, folder = os.geteuid(), path.parent.stat()
    for place, owner, right in ((path, path.stat().st_uid, {me}), (path.parent, folder.st_uid, {me, 0})):
        if owner not in right:
            whose = f"{_shown(place)} belongs to another user (number {owner})"
            return Finding("store", is_right=False, found=whose, what_to_do=f"Run as that user, {_ELSEWHERE}.")
    if folder.st_mode & _OTHERS_WRITE and not folder.st_mode & stat.S_ISVTX:
        found = f"other users may write to {_shown(path.parent)}"
        return Finding("store", is_right=False, found=found, what_to_do=f"chmod 700 {_quoted(path.parent)}")
    return None


def _room_finding(path: Path) -> Finding | None:
    free = shutil.disk_usage(_nearest(path)).free
    if free >= LEAST_MIB * MIB:
        return None
    found = f"{free // MIB} MiB are free on the disk of {_shown(path)}; a run that cannot be written down is cut off"
    return Finding("store", is_right=False, found=found, what_to_do=f"Free some space, {_ELSEWHERE}.")


def _runs(store: Store) -> str:
    [[count]] = store.execute("SELECT count(*) FROM recording")
    return counted(int(count), "recorded run")


def _size(path: Path) -> str:
    size = sum(one.stat().st_size for one in (path, log_of(path)) if one.exists())
    return f"{size / MIB:.1f} MiB"


def _repair(path: Path) -> str:
    store, away = _quoted(path), _quoted(path.with_name(f"{path.name}.damaged"))
    saving = f"sqlite3 {away} .recover | sqlite3 {store}"
    return f"End what uses it, and: mv {store} {away} (a new one is made); what can be read is saved by: {saving}"


def _nearest(path: Path) -> Path:
    """Return the folder in which a file is or would be made."""
    return next((folder for folder in path.parents if folder.is_dir()), Path())


def _shown(path: Path) -> str:
    """Return a path as people write it."""
    try:
        return str(Path("~") / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)


def _quoted(path: Path) -> str:
    shown = _shown(path)
    return shown if shlex.quote(shown.removeprefix("~/")) == shown.removeprefix("~/") else shlex.quote(str(path))
