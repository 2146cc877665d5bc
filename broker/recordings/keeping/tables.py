"""Where recordings are in the store.

Above: recordings.py. Below: store.py. A line is kept under its recording and number, a large value under its digest.
"""

from __future__ import annotations

from broker.store import Tables

TABLES = Tables(
    "recordings",
    (
        (
            """CREATE TABLE recording (
                id INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, began INTEGER NOT NULL, mode TEXT NOT NULL,
                filename TEXT NOT NULL, state TEXT NOT NULL, owner TEXT NOT NULL, calls INTEGER NOT NULL DEFAULT 0,
                ended INTEGER, bytes INTEGER NOT NULL DEFAULT 0, is_imported INTEGER NOT NULL DEFAULT 0) STRICT""",
            "CREATE INDEX recording_began ON recording (began)",
            """CREATE TABLE recording_line (
                recording INTEGER NOT NULL REFERENCES recording ON DELETE CASCADE, number INTEGER NOT NULL,
                line TEXT NOT NULL, PRIMARY KEY (recording, number)) STRICT, WITHOUT ROWID""",
            "CREATE TABLE recording_value (sha256 TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT",
            """CREATE TABLE recording_value_use (
                recording INTEGER NOT NULL REFERENCES recording ON DELETE CASCADE, sha256 TEXT NOT NULL,
                PRIMARY KEY (recording, sha256)) STRICT, WITHOUT ROWID""",
            "CREATE INDEX recording_value_used ON recording_value_use (sha256)",
        ),
        (
            "ALTER TABLE recording ADD COLUMN request TEXT NOT NULL DEFAULT ''",
            "CREATE INDEX recording_request ON recording (request) WHERE request != ''",
        ),
        ("ALTER TABLE recording ADD COLUMN was_taken_up INTEGER NOT NULL DEFAULT 0",),
        ("ALTER TABLE recording ADD COLUMN imported_at INTEGER NOT NULL DEFAULT 0",),
        ("ALTER TABLE recording RENAME COLUMN was_taken_up TO was_resumed",),
        ("ALTER TABLE recording ADD COLUMN ran INTEGER",),
    ),
)
