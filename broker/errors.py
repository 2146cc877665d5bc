"""What the broker raises to its callers. What a script can cause is a value, never one of these.

BrokerError
├── ConfigError                 the config cannot be used; the text lists every problem
├── UnknownToolError            no such tool; carries the nearest names
├── PatternError                a pattern of tools that can match nothing
├── StoreError                  what is kept on disk cannot be read or written
├── RunInterruptedError         a run was cut off by a fault of store or sandbox; says what of it was executed
├── RecordingError              a recording is not there, not whole, or cannot be used for this
├── LoginError                  a server wants a login, or it did not come about
├── UnfitResultError            what a server answered a call with cannot be given to a script
├── SearchError                 a search cannot be done as asked; the text says what to change
└── UpstreamError               one call or listing at one server failed
    ├── UnavailableError        the server is not connected; nothing was sent
    ├── CallTimeoutError        no answer in time; the server was told to cancel
    ├── OutcomeUnknownError     sent, then the connection was lost; never repeated by us
    ├── ToolRejectedError       the server answered with a JSON-RPC error
    ├── InputRefusedError       the server asked for input during the call, and nobody gave it
    └── ReplyError              the answer is not what the protocol allows
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class BrokerError(Exception):
    """Base of everything this package raises on purpose."""


class ConfigError(BrokerError):
    """The config cannot be used.

    Attributes:
        source: The file, as the caller named it.
        problems: One sentence each; values of the environment and of headers are never in them.
    """

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        """Join the problems into one text."""
        self.source = source
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            super().__init__(f"{source}: {self.problems[0]}")
        else:
            listed = "".join(f"\n  - {problem}" for problem in self.problems)
            super().__init__(f"{source}: {len(self.problems)} problems{listed}")


class UnknownToolError(BrokerError):
    """No tool of this name is in the catalog.

    Attributes:
        name: The name that was asked for.
        suggestions: Names of the catalog that look like it, best first.
        is_ambiguous: Whether the suggestions are the tools of several servers that all have this name.
        is_withdrawn: Whether its server offered it before.
    """

    def __init__(
        self, name: str, suggestions: Sequence[str], *, is_ambiguous: bool = False, is_withdrawn: bool = False
    ) -> None:
        """Say what was asked for and what comes near; arguments as the attributes."""
        self.name = name
        self.suggestions = tuple(suggestions)
        self.is_ambiguous = is_ambiguous
        self.is_withdrawn = is_withdrawn
        from broker.texts.call_texts import no_tool  # noqa: PLC0415  # the texts are not loaded for --help

        super().__init__(no_tool(name, suggestions, is_ambiguous=is_ambiguous, is_withdrawn=is_withdrawn))


class PatternError(BrokerError):
    """A pattern of tools is empty or can match no `server.tool`."""


class SearchError(BrokerError):
    """A search cannot be done as asked: its cursor, limit, filter or regular expression. The text says what to do."""


class RecordingError(BrokerError):
    """A recording is not there, not whole, or cannot be used for what was asked. The text says which and why."""


class StoreError(BrokerError):
    """The file that keeps what outlives a process cannot be used. The text names it, and is for the operator.

    Attributes:
        is_busy: Another process has it locked; later it may go.
        is_read_only: It cannot be written, and perhaps it can be read.
        is_damaged: It is no database, or not a whole one.
    """

    def __init__(
        self, message: str, *, is_busy: bool = False, is_read_only: bool = False, is_damaged: bool = False
    ) -> None:
        """Keep beside the text what can still be done."""
        super().__init__(message)
        self.is_busy = is_busy
        self.is_read_only = is_read_only
        self.is_damaged = is_damaged


class RunInterruptedError(BrokerError):
    """A run was cut off because it could not be written down, or because there was no worker for it any more.

    Attributes:
        run_id: Which run.
        executed: Sentences on what was sent and what was not; no path of the host is in them.
        what_to_do: How to go on with it.
    """

    def __init__(self, run_id: str, problem: str, *, executed: str, can_resume: bool) -> None:
        """Take what was wrong, as a sentence, and whether the run can be resumed."""
        super().__init__(f"{run_id} was interrupted. {problem} {executed}")
        self.run_id = run_id
        self.executed = executed
        from broker.texts.run_texts import go_on  # noqa: PLC0415  # as above

        self.what_to_do = go_on(run_id, can_resume=can_resume)


class LoginError(BrokerError):
    """A server wants a person to log in, or a login did not come about. The text says why, and holds no secret."""


class UnfitResultError(BrokerError):
    """What a server answered a call with cannot be given to a script.

    The text says why, after "the result of …". Becomes the failure of that call, and never leaves the package.

    Attributes:
        is_too_large: Less of it could be given.
    """

    def __init__(self, fault: str, *, is_too_large: bool = False) -> None:
        """Keep beside the text whether there is too much."""
        super().__init__(fault)
        self.is_too_large = is_too_large


class UpstreamError(BrokerError):
    """One request to one server failed. The text is ours; `str()` of it may be shown to a script."""

    def __init__(self, server: str, message: str) -> None:
        """Keep the server's name beside the sentence about it."""
        self.server = server
        super().__init__(message)


class UnavailableError(UpstreamError):
    """The server is not connected. Nothing was sent."""


class CallTimeoutError(UpstreamError):
    """The answer did not come in time; the server was told to cancel, and may have acted."""


class OutcomeUnknownError(UpstreamError):
    """The call was sent and the connection was lost before its answer came."""


class ToolRejectedError(UpstreamError):
    """The server answered with a JSON-RPC error.

    Attributes:
        code: The JSON-RPC error code.
        server_text: The server's own words without secrets, not bounded.
    """

    def __init__(self, server: str, code: int, server_text: str) -> None:
        """Keep the server's words apart from ours."""
        from broker.texts.call_texts import answered_with_error  # noqa: PLC0415  # as above

        super().__init__(server, answered_with_error(server, code))
        self.code = code
        self.server_text = server_text


class InputRefusedError(UpstreamError):
    """The server answered the call with a question that nobody answered."""


class ReplyError(UpstreamError):
    """The answer is not what the protocol allows, or is larger than we accept."""
