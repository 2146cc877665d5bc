"""The MCP host: connects to servers, runs scripts in the sandbox and answers their tool calls, each authorized.

Composes `codegen` and `sandbox`, which know nothing of it. docs/embedding.md shows how it is used.

Broker, Session                    the servers of one process; what one agent has fetched and may call
Store                              the file of what outlives a process: grants, audit, recordings
Config, ServerConfig               the `mcpServers` JSON
Grant, Denial, Predicate           what people allow and refuse; PolicyConfig: what the operator does
ExecutionResult, ExecutionError    how a run ended, with its CallRecords
Answerer, Question, Answer         who is asked about calls; CallGroup, PendingCall, Verdict; Form, FormReply
QuestionBox                        an answerer who comes later; OpenQuestion, OpenForm: what waits in it
RecordedRuns, RecordingEntry       the recorded runs; Recording, CallStory: one of them, from there or read_recording
Replayed, compare_recordings       what is different now: Difference; Comparison, Change
tool_definitions, Reply            a model's three tools, and what answers their calls
BrokerServer, ServeSettings        the same as an MCP server; KeptOutputs
Catalog, CatalogEntry              the tools; ToolDetails: what a model reads of them; ServerStatus: a server's state
CheckedScript, CheckMode           scripts checked without running them
Extraction, Sampling               what a model is asked, by scripts and by servers; Extractor, Sampler: who asks it
SearchRequest, SearchPage          a search of the tools and a page of what it finds; Embedder, Ranker: models in it
DirectResult                       what a tool returned that was called without a script
UnknownOutcome, UnknownAnswerer    what becomes, in a resumed run, of calls whose outcome is not known
BrokerError                        the base of the other errors; each method says which of them it raises

Each public name is loaded when it is first used: the command line answers `--help` without the MCP SDK or wasmtime.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.authorization.calls import PendingCall
    from broker.authorization.forms import Form, FormReply
    from broker.authorization.grants import Denial, Grant
    from broker.authorization.policy_config import PolicyConfig
    from broker.authorization.predicates import Predicate
    from broker.authorization.question_box import OpenForm, OpenQuestion, QuestionBox
    from broker.authorization.questions import Answer, Answerer, CallGroup, Question, Verdict
    from broker.broker import Broker
    from broker.calls.attempts import CallRecord
    from broker.calls.direct_calls import DirectResult
    from broker.calls.extraction import Extraction, Extractor
    from broker.config.config import Config
    from broker.disclosure.tool_details import ToolDetails
    from broker.errors import (
        BrokerError,
        ConfigError,
        PatternError,
        RecordingError,
        RunInterruptedError,
        SearchError,
        StoreError,
        UnavailableError,
        UnknownToolError,
        UpstreamError,
    )
    from broker.recorded_runs import RecordedRuns
    from broker.recordings.call_story import CallStory
    from broker.recordings.files import read_recording
    from broker.recordings.journal.resuming import UnknownAnswerer
    from broker.recordings.keeping.entries import RecordingEntry
    from broker.recordings.recording import Recording
    from broker.recordings.replay.compare import Change, Comparison, compare_recordings
    from broker.recordings.replay.replay import Difference, Replayed
    from broker.recordings.settings import UnknownOutcome
    from broker.runs.envelope import ExecutionError, ExecutionResult
    from broker.runs.script_check import CheckedScript, CheckMode
    from broker.search import Embedder, Ranker, SearchPage, SearchRequest
    from broker.server import BrokerServer, ServeSettings
    from broker.sessions import Session
    from broker.store import Store
    from broker.surface import KeptOutputs, Reply, tool_definitions
    from broker.tools.catalog import Catalog, CatalogEntry
    from broker.upstreams.server_config import ServerConfig
    from broker.upstreams.server_status import ServerStatus
    from broker.upstreams.upstream_requests import Sampler, Sampling

_MODULES = {
    "Answer": "authorization.questions",
    "Answerer": "authorization.questions",
    "Broker": "broker",
    "BrokerError": "errors",
    "BrokerServer": "server",
    "CallGroup": "authorization.questions",
    "CallRecord": "calls.attempts",
    "CallStory": "recordings.call_story",
    "Catalog": "tools.catalog",
    "CatalogEntry": "tools.catalog",
    "Change": "recordings.replay.compare",
    "CheckMode": "runs.script_check",
    "CheckedScript": "runs.script_check",
    "Comparison": "recordings.replay.compare",
    "Config": "config.config",
    "ConfigError": "errors",
    "Denial": "authorization.grants",
    "Difference": "recordings.replay.replay",
    "DirectResult": "calls.direct_calls",
    "Embedder": "search",
    "ExecutionError": "runs.envelope",
    "ExecutionResult": "runs.envelope",
    "Extraction": "calls.extraction",
    "Extractor": "calls.extraction",
    "Form": "authorization.forms",
    "FormReply": "authorization.forms",
    "Grant": "authorization.grants",
    "KeptOutputs": "surface",
    "OpenForm": "authorization.question_box",
    "OpenQuestion": "authorization.question_box",
    "PatternError": "errors",
    "PendingCall": "authorization.calls",
    "PolicyConfig": "authorization.policy_config",
    "Predicate": "authorization.predicates",
    "Question": "authorization.questions",
    "QuestionBox": "authorization.question_box",
    "Ranker": "search",
    "RecordedRuns": "recorded_runs",
    "Recording": "recordings.recording",
    "RecordingEntry": "recordings.keeping.entries",
    "RecordingError": "errors",
    "Replayed": "recordings.replay.replay",
    "Reply": "surface",
    "RunInterruptedError": "errors",
    "Sampler": "upstreams.upstream_requests",
    "Sampling": "upstreams.upstream_requests",
    "SearchError": "errors",
    "SearchPage": "search",
    "SearchRequest": "search",
    "ServeSettings": "server",
    "ServerConfig": "upstreams.server_config",
    "ServerStatus": "upstreams.server_status",
    "Session": "sessions",
    "Store": "store",
    "StoreError": "errors",
    "ToolDetails": "disclosure.tool_details",
    "UnavailableError": "errors",
    "UnknownAnswerer": "recordings.journal.resuming",
    "UnknownOutcome": "recordings.settings",
    "UnknownToolError": "errors",
    "UpstreamError": "errors",
    "Verdict": "authorization.questions",
    "compare_recordings": "recordings.replay.compare",
    "read_recording": "recordings.files",
    "tool_definitions": "surface",
}

__all__ = [
    "Answer",
    "Answerer",
    "Broker",
    "BrokerError",
    "BrokerServer",
    "CallGroup",
    "CallRecord",
    "CallStory",
    "Catalog",
    "CatalogEntry",
    "Change",
    "CheckMode",
    "CheckedScript",
    "Comparison",
    "Config",
    "ConfigError",
    "Denial",
    "Difference",
    "DirectResult",
    "Embedder",
    "ExecutionError",
    "ExecutionResult",
    "Extraction",
    "Extractor",
    "Form",
    "FormReply",
    "Grant",
    "KeptOutputs",
    "OpenForm",
    "OpenQuestion",
    "PatternError",
    "PendingCall",
    "PolicyConfig",
    "Predicate",
    "Question",
    "QuestionBox",
    "Ranker",
    "RecordedRuns",
    "Recording",
    "RecordingEntry",
    "RecordingError",
    "Replayed",
    "Reply",
    "RunInterruptedError",
    "Sampler",
    "Sampling",
    "SearchError",
    "SearchPage",
    "SearchRequest",
    "ServeSettings",
    "ServerConfig",
    "ServerStatus",
    "Session",
    "Store",
    "StoreError",
    "ToolDetails",
    "UnavailableError",
    "UnknownAnswerer",
    "UnknownOutcome",
    "UnknownToolError",
    "UpstreamError",
    "Verdict",
    "compare_recordings",
    "read_recording",
    "tool_definitions",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
