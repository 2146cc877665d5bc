"""A call before it is made, as it is decided and shown to people.

Above: everything that decides, asks or records. Below: shown.py. Who wrote what: `arguments` the script; tool,
annotations and what stands behind the digest the server; the caller and the labels are our own knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.authorization.shown import shown_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.recordings.parts import RecordedTool
    from codegen import ToolAnnotations


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a call is made; an empty text where it is not known.

    Attributes:
        session: The session's handle.
        principal: Who authenticated, where somebody has to.
        run: The run's id.
        script: `sha256:` and the digest of the script's text.
    """

    session: str = ""
    principal: str = ""
    run: str = ""
    script: str = ""


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What may be believed about a tool.

    Attributes:
        read_only: The server's hint where the operator trusts it, else None; so are the next three.
        destructive: Whether it may destroy.
        idempotent: Whether repeating it changes nothing more.
        open_world: Whether it reaches other systems.
        labels: Those that the operator gave its server.
    """

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    labels: frozenset[str] = frozenset()

    @classmethod
    def of(cls, hints: ToolAnnotations | RecordedTool, *, trust_annotations: bool, labels: Iterable[str]) -> ToolFacts:
        """Return what may be believed of what a server says, now or in a recording."""
        if not trust_annotations:
            return cls(labels=frozenset(labels))
        return cls(hints.read_only, hints.destructive, hints.idempotent, hints.open_world, frozenset(labels))


@dataclass(frozen=True, slots=True)
class PendingCall:
    """One call that is about to be decided."""

    server: str
    tool: str
    digest: str
    arguments: dict[str, Any]
    facts: ToolFacts = ToolFacts()
    caller: Caller = Caller()

    @property
    def qualified_name(self) -> str:
        """`server.tool`."""
        return f"{self.server}.{self.tool}"

    @property
    def shown_name(self) -> str:
        """The same for a text that somebody reads."""
        return shown_name(self.qualified_name)
