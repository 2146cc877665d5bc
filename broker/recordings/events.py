"""The lines of a recording: what happened in a run, in the order in which it was written down.

Above: everything that writes, reads or shows recordings. Below: parts.py. The published JSON Schema is made from these
models. A line is written before what it tells of takes effect.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from broker.recordings.parts import (
    MAX_INTEGER,
    CallAnswer,
    CallId,
    Digest,
    Inline,
    Nanoseconds,
    Part,
    RecordedCall,
    RecordedDenial,
    RecordedGrant,
    RecordedText,
    RecordedTool,
    Stored,
)

FORMAT = "codemode-recording"
VERSION: Literal[1] = 1
State: TypeAlias = Literal["running", "interrupted", "parked", "completed", "raised", "stopped"]


class _Event(Part):
    at: Nanoseconds
    """Unix time."""


class Begun(_Event):
    """The first line: all that the run depends on but the answers to its calls.

    Attributes:
        manifest: The stubs, as the guest was told of them.
        seed: Where its random numbers come from.
        wall_ns: Unix time at which its own clock starts.
        image: sha256 of the guest image.
        tools: Those that were described.
        grants: What was allowed before it began.
        denials: What was refused before it began.
        principal: Who was authenticated, where somebody has to be.
        session: The session that ran it.
        policy: What the operator had configured.
        redactions: Secrets that were taken out of the script and the manifest.
    """

    event: Literal["begun"] = "begun"
    format: Literal["codemode-recording"] = "codemode-recording"
    version: Literal[1] = VERSION
    run_id: str = Field(pattern=r"^run_[0-9a-f]{16}$")
    mode: Literal["metadata", "full"]
    filename: str
    script: Stored
    manifest: Stored
    seed: int = Field(ge=0, lt=2**64)
    wall_ns: Nanoseconds
    limits: dict[str, float]
    image: str
    tools: tuple[RecordedTool, ...] = ()
    grants: tuple[RecordedGrant, ...] = ()
    denials: tuple[RecordedDenial, ...] = ()
    principal: str = ""
    session: str = ""
    policy: Stored = Inline(value=None)
    versions: dict[str, str] = Field(default={})
    redactions: int = 0

    @property
    def servers(self) -> set[str]:
        """The servers whose tools its script was given."""
        return {tool.server for tool in self.tools}


class Stepped(_Event):
    """A step returned; none of its calls has been made yet.

    Attributes:
        now_ns: The run's clock when it began.
        completions: Ids of the calls whose answers were handed in, in that order.
        calls: New calls that the script waits for.
        cancelled: Earlier calls that it no longer waits for.
        timer: When it goes on by itself, on the run's clock, in seconds.
        outcome: Set when the script has ended.
    """

    event: Literal["stepped"] = "stepped"
    number: int = Field(ge=0, le=MAX_INTEGER)
    now_ns: Nanoseconds
    completions: tuple[CallId, ...] = ()
    calls: tuple[RecordedCall, ...] = ()
    cancelled: tuple[int, ...] = ()
    timer: float | None = None
    printed: tuple[RecordedText, ...] = ()
    outcome: Stored | None = None


class Asked(_Event):
    """A person is asked about a call."""

    event: Literal["asked"] = "asked"
    call: CallId


class Decided(_Event):
    """A person has answered; none of the calls that this allows has been sent yet."""

    event: Literal["decided"] = "decided"
    by: str
    calls: tuple[CallAnswer, ...]
    grants: tuple[RecordedGrant, ...] = ()
    denials: tuple[RecordedDenial, ...] = ()


class Revoked(_Event):
    """A grant was taken back: its number."""

    event: Literal["revoked"] = "revoked"
    grant: int = Field(ge=0, le=MAX_INTEGER)


class Denied(_Event):
    """A call was refused; `by` is why, empty where no content is kept."""

    event: Literal["denied"] = "denied"
    call: CallId
    by: str


class Sent(_Event):
    """A call was allowed and is sent now.

    Attributes:
        by: What allowed it; empty where no content is kept.
        grant: The number of the grant that it uses, where it is one.
    """

    event: Literal["sent"] = "sent"
    call: CallId
    server: str
    tool: str
    digest: str
    by: str
    grant: int | None = Field(default=None, ge=0, le=MAX_INTEGER)


class Kept(_Event):
    """The answer to a call holds content blocks that the script gets handles of: each by the handle's id."""

    event: Literal["kept"] = "kept"
    call: CallId
    blocks: dict[str, Stored]


class Answered(_Event):
    """The answer to a call; the script has not seen it yet. `result` has a `value` or an `error`."""

    event: Literal["answered"] = "answered"
    call: CallId
    result: Stored


class Ended(_Event):
    """The run has ended, or is parked; `printed` is of a step that did not return."""

    event: Literal["ended"] = "ended"
    outcome: Stored
    printed: tuple[RecordedText, ...] = ()


class Resumed(_Event):
    """The run was resumed, with these grants beside its own; what follows goes on from the steps above."""

    event: Literal["resumed"] = "resumed"
    grants: tuple[RecordedGrant, ...] = ()


Event: TypeAlias = Begun | Stepped | Asked | Decided | Revoked | Denied | Sent | Kept | Answered | Ended | Resumed


class KeptValue(Part):
    """In a file: a value that later lines name by its digest."""

    event: Literal["value"] = "value"
    sha256: Digest
    text: str


class Sealed(Part):
    """In a file: the last line, with the sha256 of all lines before it."""

    event: Literal["sealed"] = "sealed"
    sha256: Digest


EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])
LINE: TypeAdapter[Event | KeptValue | Sealed] = TypeAdapter(
    Annotated[Event | KeptValue | Sealed, Field(discriminator="event")]
)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of an exported recording."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A line of a {FORMAT} file, version {VERSION}",
        **LINE.json_schema(),
    }
