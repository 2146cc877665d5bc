"""Grants that outlive their session: kept in the store until they are revoked, lapse or expire.

Above: desk.py, and `codemode grants`. Below: store.py. A kept grant is for one tool, as it was defined then, of one
server, as it was configured then: another server under the same name does not inherit it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from broker.authorization.grants import Grant
from broker.authorization.predicates import Predicate
from broker.authorization.shown import shown_name
from broker.errors import PatternError, StoreError
from broker.store import Tables
from codegen import ToolAnnotations, ToolSpec
from codegen.tool_spec import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.store import Store
    from broker.upstreams.server_config import ServerConfig

KEPT = "k_"
"""How the ids of kept grants begin."""

TABLES = Tables(
    "grants",
    (
        (
            """
            CREATE TABLE kept_grant (
                id TEXT PRIMARY KEY, principal TEXT NOT NULL, identity TEXT NOT NULL, pattern TEXT NOT NULL,
                definition TEXT NOT NULL, arguments TEXT, calls INTEGER, expires_at TEXT, after TEXT NOT NULL,
                given_at TEXT NOT NULL, given_by TEXT NOT NULL
            ) STRICT
            """,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class KeptGrant:
    """A grant in the store.

    Attributes:
        id: What revokes it.
        grant: As it was given.
        definition: The tool as it was defined then.
        identity: Of the server as it was configured then.
        principal: For whom it was given; empty for the user of this machine.
        given_at: UTC, ISO 8601.
        by: Who gave it.
    """

    id: str
    grant: Grant
    definition: ToolSpec
    identity: str
    principal: str
    given_at: str
    by: str


class KeptGrants:
    """The kept grants of one store."""

    def __init__(self, store: Store, identities: Mapping[str, str] | None = None) -> None:
        """Prepare the tables; `identities` are those of the configured servers, by name.

        Raises:
            StoreError: The store cannot be used.
        """
        store.prepare(TABLES)
        self._store = store
        self._identities = identities or {}

    def keep(self, grant: Grant, definition: ToolSpec, *, principal: str, by: str) -> str:
        """Keep a grant and return its id.

        Raises:
            StoreError: It cannot be written.
        """
        grant_id = f"{KEPT}{secrets.token_hex(4)}"
        self._store.execute(
            "INSERT INTO kept_grant VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                grant_id,
                principal,
                self._identities.get(definition.server, ""),
                grant.pattern,
                canonical_json(asdict(definition)),
                str(grant.arguments) if grant.arguments else None,
                grant.calls,
                grant.expires_at.isoformat() if grant.expires_at else None,
                json.dumps(sorted(grant.after)),
                datetime.now(UTC).isoformat(timespec="seconds"),
                by,
            ),
        )
        return grant_id

    def held_by(self, principal: str) -> list[KeptGrant]:
        """Return the kept grants of a principal whose server is still configured as it was.

        Raises:
            StoreError: The store cannot be read.
        """
        kept = [one for one in self.every() if one.principal == principal]
        return [one for one in kept if one.identity == self._identities.get(one.definition.server, "")]

    def every(self) -> list[KeptGrant]:
        """Return every kept grant, in the order in which they were given.

        Raises:
            StoreError: The store cannot be read, or one of them is damaged.
        """
        return [_kept(row) for row in self._store.execute("SELECT * FROM kept_grant ORDER BY given_at, id")]

    def use(self, grant_id: str) -> bool:
        """Use a grant for one call; the last call of a counted grant removes it. Return whether it was still there.

        Raises:
            StoreError: It cannot be read or written.
        """
        # At once: another process may use the last call, or revoke it.
        with self._store.transaction():
            found = self._store.execute("SELECT calls FROM kept_grant WHERE id = ?", (grant_id,))
            if found and found[0][0] is not None:
                self._store.execute("DELETE FROM kept_grant WHERE id = ? AND calls <= 1", (grant_id,))
                self._store.execute("UPDATE kept_grant SET calls = calls - 1 WHERE id = ?", (grant_id,))
        return bool(found)

    def is_kept(self, grant_id: str) -> bool:
        """Tell whether a grant is still kept: neither this process nor another has revoked it.

        Raises:
            StoreError: The store cannot be read.
        """
        return bool(self._store.execute("SELECT 1 FROM kept_grant WHERE id = ?", (grant_id,)))

    def revoke(self, grant_id: str) -> bool:
        """Take a grant back; tell whether there was one.

        Raises:
            StoreError: It cannot be written.
        """
        return bool(self._store.execute("DELETE FROM kept_grant WHERE id = ? RETURNING id", (grant_id,)))


def server_identity(settings: ServerConfig) -> str:
    """Return what tells one configured server from another one under its name; secrets are no part of it."""
    place = [settings.command, list(settings.args), None if settings.cwd is None else str(settings.cwd), settings.url]
    return hashlib.sha256(canonical_json(place).encode("ascii")).hexdigest()


def _kept(row: tuple[Any, ...]) -> KeptGrant:
    """Return a grant of the store, which may have been edited there.

    Raises:
        StoreError: It is none that was kept so.
    """
    grant_id, principal, identity, pattern, definition, arguments, calls, expires_at, after, given_at, by = row
    try:
        datetime.fromisoformat(given_at)
        fields = json.loads(definition)
        spec = ToolSpec(**{**fields, "annotations": ToolAnnotations(**fields["annotations"])})
        grant = Grant(
            pattern,
            spec.digest,
            Predicate.parse(json.loads(arguments)) if arguments else None,
            calls,
            "always",
            datetime.fromisoformat(expires_at) if expires_at else None,
            frozenset(json.loads(after)),
        )
    except (AttributeError, KeyError, PatternError, RecursionError, TypeError, ValueError):
        name = shown_name(grant_id)
        raise StoreError(
            f"the permanent grant {name!r} in the store is damaged; `codemode grants revoke {name}` removes it."
        ) from None
    return KeptGrant(grant_id, grant, spec, identity, principal, given_at, by)
