"""A keyring of the `keyring` package in a file, FILE_KEYRING, for machines without one: a real backend, for tests."""

from __future__ import annotations

import json
import os
from pathlib import Path

import keyring.backend
import keyring.errors


class FileKeyring(keyring.backend.KeyringBackend):
    # Below all others: used where it is named, and never chosen.
    priority = -5

    def get_password(self, service, username):
        return self._read().get(f"{service} {username}")

    def set_password(self, service, username, password):
        self._write({**self._read(), f"{service} {username}": password})

    def delete_password(self, service, username):
        kept = self._read()
        if kept.pop(f"{service} {username}", None) is None:
            raise keyring.errors.PasswordDeleteError("there is none")
        self._write(kept)

    def _read(self):
        path = Path(os.environ["FILE_KEYRING"])
        return json.loads(path.read_text()) if path.exists() else {}

    def _write(self, kept):
        Path(os.environ["FILE_KEYRING"]).write_text(json.dumps(kept))
