"""The grants and denials of a session, and the desks of its runs, which decide their calls.

Above: `Broker.session`, sessions.py. Below: run_desk.py, grants.py, kept_grants.py.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from broker.authorization.calls import Caller, PendingCall
from broker.authorization.definitions import difference
from broker.authorization.flow import FlowState
from broker.authorization.grants import GrantBook
from broker.authorization.kept_grants import KEPT, KeptGrants
from broker.authorization.outlook import outlook
from broker.authorization.patterns import literal
from broker.authorization.policy import Policy
from broker.authorization.quotas import Quotas
from broker.authorization.run_answerer import RunAnswerer
from broker.authorization.run_desk import RunDesk
from broker.calls.call_journal import NoCallJournal
from broker.errors import StoreError
from broker.logging import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.audit.log import AuditLog
    from broker.authorization.grants import Grant, Held
    from broker.authorization.outlook import Outlook
    from broker.authorization.questions import Answerer
    from broker.calls.call_journal import CallJournal
    from broker.upstreams.server_config import ServerConfig
    from codegen import ToolSpec


class ConsentDesk:
    """What has been allowed and denied in a session."""

    def __init__(
        self,
        grants: Iterable[Grant] = (),
        answerer: Answerer | None = None,
        *,
        policy: Policy | None = None,
        quotas: Quotas | None = None,
        session: str = "",
        principal: str = "",
        audit: AuditLog | None = None,
        kept: KeptGrants | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Start with the grants given beforehand; without an answerer nobody is asked."""
        self.policy = policy or Policy()
        self.quotas = quotas or Quotas(self.policy)
        self.book = GrantBook.of(grants)
        self.answerer = answerer
        self.parks = False
        """Whether a run is parked with its question if nobody is there to answer it."""
        self.session = session
        self.principal = principal
        self.audit = audit
        self.kept = kept
        self.clock = clock
        self.open_runs: set[RunDesk] = set()
        self.unfinished: set[str] = set()
        """Recorded runs that began here and may go on; `Execution` removes those that have ended."""
        self._flow = FlowState()
        self._kept_definitions: dict[str, ToolSpec] = {}
        for one in kept.held_by(principal) if kept is not None else ():
            self.book.add(one.grant, by=one.by, grant_id=one.id)
            self._kept_definitions[one.definition.qualified_name] = one.definition

    @property
    def interrupted(self) -> set[str]:
        """The recorded runs that began here and can be resumed: they have not ended, and are not running."""
        return self.unfinished - {run.caller.run for run in self.open_runs}

    def see(self, spec: ToolSpec) -> None:
        """Note the definition of a tool that the session was told; an earlier grant holds for this definition only."""
        self.book.definitions.see(spec)

    def outlook(self, spec: ToolSpec, settings: ServerConfig) -> Outlook | None:
        """Return what is certain about every call of a tool in the present request; decides nothing."""
        answerer = RunAnswerer(self)
        facts = self.policy.facts_of(spec, settings)
        return outlook(
            PendingCall(spec.server, spec.name, spec.digest, {}, facts, Caller(self.session, self.principal)),
            policy=self.policy,
            grants=self.book,
            can_ask=answerer.present is not None or answerer.comes_back,
            now=self.clock(),
        )

    def revoke(self, grant_id: str) -> Held | None:
        """Revoke a grant, with its copies in resumed runs; return it if it was held.

        Raises:
            StoreError: A permanent one cannot be removed, and still holds; or a run cannot be told of it.
        """
        revoked = next((held for held in self.book.held if held.id == grant_id), None)
        if revoked is None:
            return None
        if self.kept is not None and grant_id.startswith(KEPT):
            self.kept.revoke(grant_id)
        text = str(revoked.grant)
        taken = [held.id for held in self.book.held if held.id == grant_id or held.stands_for == text]
        for one in taken:
            self.book.revoke(one)
        for run in self.open_runs:
            for one in taken:
                run.journal.revoked(one)
        return revoked

    def give(self, grant: Grant, *, run: str, by: str) -> Held:
        """Add a grant that somebody gave in a run; a permanent one goes into the store, if there is one."""
        grant_id = None
        definition = self.book.definitions.present(literal(grant.pattern)) if grant.scope == "always" else None
        if definition is not None and self.kept is not None and definition.digest == grant.digest:
            try:
                grant_id = self.kept.keep(grant, definition, principal=self.principal, by=by)
            except StoreError as error:
                logger().error("the grant holds for this session only", problem=str(error))
        return self.book.add(grant, run=run, by=by, grant_id=grant_id)

    def change(self, name: str) -> tuple[str, ...]:
        """Return how a tool has changed since it was first seen here, or since a kept grant for it was given."""
        change = self.book.definitions.change(name)
        before, now = self._kept_definitions.get(name), self.book.definitions.present(name)
        return change or (difference(before, now) if before is not None and now is not None else ())

    def use(self, held: Held) -> bool:
        """Use a grant for one call; return False if it no longer holds, as a kept one that was revoked elsewhere."""
        if self._is_lost(held, KeptGrants.use):
            self.book.revoke(held.id)
            return False
        held.calls_left -= 1
        return True

    def still_holds(self, held: Held) -> bool:
        """Tell whether a grant that was used has not been revoked since, here or elsewhere."""
        is_used_up = held.calls_left < 1  # its last use has removed it from the store
        return self.book.holds(held) and (is_used_up or not self._is_lost(held, KeptGrants.is_kept))

    def _is_lost(self, held: Held, is_there: Callable[[KeptGrants, str], bool]) -> bool:
        """Tell whether a kept grant is no longer in the store, or the store cannot be read."""
        if held.grant.scope != "always" or self.kept is None or not held.id.startswith(KEPT):
            return False
        try:
            return not is_there(self.kept, held.id)
        except StoreError as error:
            logger().error("a kept grant cannot be looked up", problem=str(error))
            return True

    def for_run(
        self, run: str = "", script: str = "", *, is_direct: bool = False, journal: CallJournal | None = None
    ) -> RunDesk:
        """Return the desk of one run, given its script's text, or of one direct call.

        All direct calls of a session share one flow state, because data goes from one to the next through the model.
        """
        flow = self._flow if is_direct or self.policy.config.flow_memory == "session" else FlowState()
        digest = hashlib.sha256(script.encode("utf-8", "surrogatepass")).hexdigest()
        caller = Caller(self.session, self.principal, run, f"sha256:{digest}")
        journal = journal or NoCallJournal()
        if journal.can_resume:
            self.unfinished.add(run)
        return RunDesk(self, caller, flow, journal)
