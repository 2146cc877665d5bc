"""How a server is doing, as a value. Knows nothing of the SDK, so that a broker without servers need not load it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["connecting", "ready", "down", "asleep", "disabled", "stopped"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How one server is doing.

    Attributes:
        name: Its name in the config.
        state: What it can be used for now. `asleep` is a lazy server that nobody needs at present.
        protocol_version: The negotiated revision, None while not connected.
        era: `2026` (stateless) or `2025` (with a handshake), None while not connected.
        tool_count: Tools of its last listing.
        problem: What is wrong, as a sentence; None when nothing is.
        what_to_do: What to do about it.
        warnings: What was left out of its listing, and names of tools in the config that it does not list.
        is_lazy: Whether it is connected only while it is needed.
        about: What the config says of it, on one line.
    """

    name: str
    state: State
    protocol_version: str | None
    era: Literal["2025", "2026"] | None
    tool_count: int
    problem: str | None
    what_to_do: str | None
    warnings: tuple[str, ...]
    is_lazy: bool = False
    about: str | None = None

    @property
    def is_unseen(self) -> bool:
        """Whether it is asleep and was never connected, so that its tools are not known."""
        return self.state == "asleep" and not self.tool_count

    @property
    def is_usable(self) -> bool:
        """Whether its tools can be called: it is connected, or will be for a call."""
        return self.state in {"ready", "asleep"}
