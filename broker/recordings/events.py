"""The lines of a recording: what happened in a run, in the order in which it was written down.

Above: everything that writes, reads or shows recordings. Below: nothing. The published JSON Schema is made from these
models. A line is written before what it tells of takes effect.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

FORMAT = "codemode-recording"
VERSION: Literal[1] = 1
Mode: TypeAlias = Literal["off", "metadata", "full"]
State: TypeAlias = Literal["running", "interrupted", "parked", "completed", "raised", "stopped"]
_MOST = 2**63 - 1
Nanoseconds = Annotated[int, Field(ge=0, le=_MOST)]
CallId = Annotated[int, Field(ge=1, le=_MOST)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Inline(_Model):
    """A value, written where it belongs."""

    value: Any


class ByDigest(_Model):
    """A large value, kept once under the sha256 of its JSON text."""

    sha256: Digest
    characters: int = Field(ge=0)


class Omitted(_Model):
    """A value that was not kept, and the characters of its JSON text."""

    omitted: int = Field(ge=0)


Stored: TypeAlias = Inline | ByDigest | Omitted


class RecordedTool(_Model):
    """A tool that the script could call, as it was then.

    Attributes:
        is_trusted: Whether its server's hints may be believed.
        labels: Those that the operator gave its server.
    """

    server: str
    tool: str
    function: str
    digest: str
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    is_trusted: bool = False
    labels: tuple[str, ...] = ()


class RecordedCall(_Model):
    """A stub call: `function` is `namespace.function`; `line` is the script's, 0 where it is not known."""

    id: CallId
    function: str
    line: int = Field(ge=0, le=_MOST)
    arguments: Stored


class RecordedText(_Model):
    """Printed text."""

    stream: Literal["stdout", "stderr"]
    text: Stored


class _Event(_Model):
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
        grants: Leave that was given beforehand.
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
    grants: tuple[str, ...] = ()
    policy: Stored = Inline(value=None)
    versions: dict[str, str] = {}
    redactions: int = 0


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
    number: int = Field(ge=0, le=_MOST)
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


class Denied(_Event):
    """A call was refused."""

    event: Literal["denied"] = "denied"
    call: CallId
    by: str


class Sent(_Event):
    """A call was allowed and is sent now."""

    event: Literal["sent"] = "sent"
    call: CallId
    server: str
    tool: str
    digest: str
    by: str


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
    """The run was taken up again; the lines that follow go on from the steps above."""

    event: Literal["resumed"] = "resumed"


Event: TypeAlias = Begun | Stepped | Asked | Denied | Sent | Answered | Ended | Resumed


class KeptValue(_Model):
    """In a file: a value that later lines name by its digest."""

    event: Literal["value"] = "value"
    sha256: Digest
    text: str


class Sealed(_Model):
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
