"""One `ty server`: a process that checks a script beside a `tools` package, and then the next one.

Above: type_checker.py. A process of `ty` takes 25 ms to learn what Python is, and a script then one or two. The script
is hostile text: it is handed over as the one cell of a notebook, in which `await` may stand outside functions, and
neither parsed nor run here. The process runs with an empty environment, in a folder of its own that is deleted
afterwards, or by a later process where its own was killed; its time, its memory and its answers are bounded.
Protocol: Language Server Protocol 3.17, base protocol, notebook documents and pull diagnostics.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ty import find_ty_bin

from codegen.errors import CheckerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

if sys.platform == "linux":
    import resource

# A hundred times what a script of a hundred lines takes.
TIMEOUT_SECONDS = 5.0
MEMORY_BYTES = 2 * 1024**3
REPORT_BYTES = 16 * 1024**2
"""Of one message; the process writes no longer file either."""
PREFIX = "codemode-check-"
LEFT_BEHIND_SECONDS = 3_600
"""How old a folder is that no check still uses: one that idles for that long is not asked again, or was killed."""
GUEST_PYTHON = "3.14"
_LONGEST_MESSAGE = 2_000
_SETTINGS = f'[environment]\npython-version = "{GUEST_PYTHON}"\npython-platform = "all"\n'
_ALWAYS_THERE = ("__builtins__.pyi", "tools/__init__.pyi")
"""What `ty` must find when it first looks for it: afterwards it asks no more."""
_CELL = "script:cell"
_CREATED, _CHANGED, _DELETED = 1, 2, 3  # FileChangeType
_HINT = 4  # DiagnosticSeverity: for editors, which grey out what is unused


@dataclass(frozen=True, slots=True)
class Finding:
    """One report of the checker; lines and columns (in characters) count from 1, the end is exclusive."""

    rule: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int


class LanguageServer:
    """A process of `ty` and its folder. For one thread at a time; after an error only `close` is left.

    Attributes:
        characters: How much text it has been given: what it has once read may stay in its memory.
        used_at: When it was last asked, by the monotonic clock.
        is_late: Whether it was killed because an answer took too long.
    """

    def __init__(self) -> None:
        """Start it.

        Raises:
            CheckerError: It cannot be started.
        """
        self.characters = 0
        self.used_at = time.monotonic()
        self.is_late = False
        self._asked = 0
        self._package: dict[str, str] = {}
        _remove_left_behind()
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        self._root = Path(self._folder.name).resolve()
        try:
            self._process = self._started()
        except OSError as error:
            self._folder.cleanup()
            raise CheckerError("the type checker could not be started") from error
        assert self._process.stdin is not None  # noqa: S101  # both were opened as pipes
        assert self._process.stdout is not None  # noqa: S101
        self._input, self._output = self._process.stdin, self._process.stdout

    def findings(self, script: str, package: Mapping[str, str]) -> list[Finding]:
        """Return what the checker says about `script` beside the files of `package`, in its order.

        Raises:
            CheckerError: It ended, took too long or answered something else.
            OSError: It could not be given its files.
        """
        self.used_at = time.monotonic()
        os.utime(self._root)
        with self._deadline():
            if not self._asked:
                self._initialize()
            self._renew(package)
            report = self._report(script)
        try:
            return [_finding(item) for item in report["items"] if item["severity"] != _HINT]
        except (ValueError, KeyError, TypeError) as error:
            raise CheckerError("the type checker wrote something that is not a report") from error

    def kill(self) -> None:
        """End the process, also while another thread waits for its answer, which it then gets an error for."""
        self._process.kill()

    def close(self) -> None:
        """End the process and remove its folder."""
        self.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # of what it did not read
            self._input.close()
        self._output.close()
        self._folder.cleanup()

    def _started(self) -> subprocess.Popen[bytes]:
        (self._root / "ty.toml").write_text(_SETTINGS, encoding="utf-8")
        (self._root / "tools").mkdir()
        for path in _ALWAYS_THERE:
            self._package[path] = ""
            (self._root / path).touch()
        # Settings of the user or of an active environment would change the answer.
        environment = {"HOME": str(self._root), "XDG_CONFIG_HOME": str(self._root), "TY_MAX_PARALLELISM": "2"}
        process = subprocess.Popen(  # noqa: S603  # nothing of a script is in the command
            [find_ty_bin(), "server"],
            cwd=self._root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        _bound(process.pid)
        return process

    @contextlib.contextmanager
    def _deadline(self) -> Iterator[None]:
        """Kill the process where what is asked of it takes too long: reading from a pipe has no limit of its own."""
        timer = threading.Timer(TIMEOUT_SECONDS, self._expire)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # or it might kill the process while that is asked the next time

    def _expire(self) -> None:
        self.is_late = True
        self.kill()

    def _initialize(self) -> None:
        folder = {"uri": self._root.as_uri(), "name": "script"}
        capabilities = {"general": {"positionEncodings": ["utf-32"]}}
        made = self._request(
            "initialize",
            {"processId": os.getpid(), "rootUri": None, "workspaceFolders": [folder], "capabilities": capabilities},
        )
        if made.get("capabilities", {}).get("positionEncoding") != "utf-32":
            raise CheckerError("the type checker does not count columns in characters")
        self._notify("initialized", {})

    def _renew(self, package: Mapping[str, str]) -> None:
        """Make the files in the folder those of a package, and say which are others than before."""
        changes = []
        for path in self._package.keys() | package.keys():
            before, text = self._package.get(path), package.get(path, "" if path in _ALWAYS_THERE else None)
            if text == before:
                continue
            file = self._root / path
            if text is None:
                file.unlink()
                del self._package[path]
            else:
                file.write_text(text, encoding="utf-8")
                self._package[path] = text
                self.characters += len(text)
            kind = _DELETED if text is None else _CREATED if before is None else _CHANGED
            changes.append({"uri": file.as_uri(), "type": kind})
        if changes:
            self._notify("workspace/didChangeWatchedFiles", {"changes": changes})

    def _report(self, script: str) -> dict[str, Any]:
        """Open the script as a notebook, ask what is wrong with it and close it."""
        self.characters += len(script)
        notebook = {"uri": (self._root / "script.ipynb").as_uri()}
        text = script.encode("utf-8", "replace").decode()  # half of a surrogate pair is no text to the server
        cell = {"uri": _CELL, "languageId": "python", "version": 1, "text": text}
        cells = [{"kind": 2, "document": _CELL}]
        opened = {**notebook, "notebookType": "jupyter-notebook", "version": 1, "cells": cells}
        self._notify("notebookDocument/didOpen", {"notebookDocument": opened, "cellTextDocuments": [cell]})
        report = self._request("textDocument/diagnostic", {"textDocument": {"uri": _CELL}})
        self._notify("notebookDocument/didClose", {"notebookDocument": notebook, "cellTextDocuments": [{"uri": _CELL}]})
        return report

    def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" in message:
                if "id" in message:  # it asks for what we have not: settings, progress
                    self._send({"id": message["id"], "result": None})
            elif message.get("id") == self._asked:
                result = message.get("result")
                if not isinstance(result, dict):
                    raise CheckerError("the type checker failed")
                return result

    def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        try:
            self._input.write(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
            self._input.flush()
        except OSError:
            raise self._ended() from None

    def _receive(self) -> dict[str, Any]:
        size = 0
        while line := self._output.readline(_LONGEST_MESSAGE).strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value) if value.strip().isdigit() else 0
        if size > REPORT_BYTES:
            raise CheckerError(f"the type checker's report is longer than {REPORT_BYTES} bytes")
        content = self._output.read(size)
        if not content or len(content) < size:
            raise self._ended()
        try:
            message = json.loads(content)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise CheckerError("the type checker wrote something that is not a message")
        return message

    def _ended(self) -> CheckerError:
        self.kill()
        status = self._process.wait()
        if self.is_late:
            return CheckerError(f"the type checker took longer than {TIMEOUT_SECONDS:.0f} seconds")
        return CheckerError(f"the type checker ended with status {status}")


@cache
def _remove_left_behind() -> None:
    """Remove, once in a process, the folders of this user's checks whose process was killed; not on Windows."""
    if sys.platform != "win32":
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                found = folder.lstat()
                is_old = time.time() - found.st_mtime > LEFT_BEHIND_SECONDS
                if is_old and stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                    shutil.rmtree(folder, ignore_errors=True)


def _bound(pid: int) -> None:
    """Bound what the checker may use; where the platform cannot, its time alone is bounded."""
    if sys.platform == "linux":
        amounts = {resource.RLIMIT_AS: MEMORY_BYTES, resource.RLIMIT_FSIZE: REPORT_BYTES, resource.RLIMIT_CORE: 0}
        for kind, amount in amounts.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, kind, (amount, amount))


def _finding(item: Any) -> Finding:
    begin, end = item["range"]["start"], item["range"]["end"]
    return Finding(
        rule=str(item["code"]),
        message=str(item["message"]).partition("\n\n")[0][:_LONGEST_MESSAGE],  # notes and help follow
        line=int(begin["line"]) + 1,
        column=int(begin["character"]) + 1,
        end_line=int(end["line"]) + 1,
        end_column=int(end["character"]) + 1,
    )
