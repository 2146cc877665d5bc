"""What the lines of a recording are made of: values, tools, grants, calls, text.

Above: events.py. Below: nothing. These models read files of any origin, so they refuse fields that they do not know.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from broker.errors import RecordingError

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_INTEGER = 2**63 - 1
Nanoseconds = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
CallId = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Part(BaseModel):
    """Anything in a line."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Inline(Part):
    """A value, written where it belongs."""

    value: Any


class ByDigest(Part):
    """A large value, kept once under the sha256 of its JSON text."""

    sha256: Digest
    characters: int = Field(ge=0)


class Omitted(Part):
    """A value that was not kept, and the characters of its JSON text."""

    omitted: int = Field(ge=0)


# They exclude each other: the first that fits is it, and what comes after it is not tried.
Stored: TypeAlias = Annotated[Inline | ByDigest | Omitted, Field(union_mode="left_to_right")]


class RecordedTool(Part):
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


class RecordedGrant(Part):
    """A grant that held for the run; those of a recording are numbered from 0 in its order.

    Attributes:
        calls: For how many calls it was good then; None for any number.
        expires_at: ISO 8601.
        after: Labels that the run may have received.
        by: Who gave it.
    """

    pattern: str
    digest: str | None = None
    arguments: dict[str, Any] | None = None
    calls: int | None = Field(default=None, ge=0)
    scope: Literal["run", "session", "always"] = "session"
    expires_at: str | None = None
    after: tuple[str, ...] = ()
    by: str = ""


class RecordedDenial(Part):
    """A person's no to all calls that a pattern and tests on arguments cover."""

    pattern: str
    note: str = ""
    arguments: dict[str, Any] | None = None


class CallAnswer(Part):
    """What was said of one call of a question.

    Attributes:
        digest: The tool's definition that was shown.
        after: Labels that were shown.
        allow: None where nothing was said of the call alone: it is refused unless a grant covers it.
        note: Words for the script where it is refused.
    """

    call: CallId
    digest: str
    after: tuple[str, ...] = ()
    allow: bool | None = None
    note: str = ""


class RecordedCall(Part):
    """A stub call: `function` is `namespace.function`; `line` is the script's, 0 where it is not known."""

    id: CallId
    function: str
    line: int = Field(ge=0, le=MAX_INTEGER)
    arguments: Stored


class RecordedText(Part):
    """Printed text."""

    stream: Literal["stdout", "stderr"]
    text: Stored


def load_stored(stored: Stored, find: Callable[[str], str | None]) -> Any:
    """Return a stored value; `find` has the JSON text of a large one by its digest.

    Raises:
        RecordingError: It was not kept, or is not there.
    """
    match stored:
        case Inline(value=value):
            return value
        case ByDigest(sha256=digest):
            text = find(digest)
            if text is None:
                raise RecordingError(f"the value {digest[:12]}… is missing from the recording")
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                raise RecordingError(f"the value {digest[:12]}… is not JSON that can be read") from None
        case Omitted():
            raise RecordingError("it holds metadata only: what was called, not with what")
