"""The MCP host: connects to servers, runs scripts in the sandbox and answers their tool calls, each authorized.

Composes `codegen` and `sandbox`, which know nothing of it.

Each public name is loaded when it is first used: the command line answers `--help` without the MCP SDK or wasmtime.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.attempts import CallRecord
    from broker.authorization.calls import PendingCall
    from broker.authorization.forms import Form, FormReply
    from broker.authorization.grants import Denial, Grant
    from broker.authorization.policy import PolicyConfig
    from broker.authorization.predicates import Predicate
    from broker.authorization.question_box import QuestionBox
    from broker.authorization.questions import Answer, Answerer, Question, Verdict
    from broker.broker import Broker
    from broker.catalog import Catalog, CatalogEntry
    from broker.config import Config, ServerConfig
    from broker.envelope import ExecutionError, ExecutionResult
    from broker.errors import BrokerError, ConfigError, PatternError, UnknownToolError, UpstreamError
    from broker.script_check import CheckedScript, CheckMode
    from broker.script_functions import Extraction
    from broker.server import BrokerServer, ServeSettings
    from broker.server_status import ServerStatus
    from broker.sessions import Session
    from broker.surface import KeptOutputs, Reply, tool_definitions
    from broker.tool_details import ToolDetails
    from broker.upstream_requests import Sampling

_MODULES = {
    "Answer": "authorization.questions",
    "Answerer": "authorization.questions",
    "Broker": "broker",
    "BrokerError": "errors",
    "BrokerServer": "server",
    "CallRecord": "attempts",
    "Catalog": "catalog",
    "CatalogEntry": "catalog",
    "CheckMode": "script_check",
    "CheckedScript": "script_check",
    "Config": "config",
    "ConfigError": "errors",
    "Denial": "authorization.grants",
    "ExecutionError": "envelope",
    "ExecutionResult": "envelope",
    "Extraction": "script_functions",
    "Form": "authorization.forms",
    "FormReply": "authorization.forms",
    "Grant": "authorization.grants",
    "KeptOutputs": "surface",
    "PatternError": "errors",
    "PendingCall": "authorization.calls",
    "PolicyConfig": "authorization.policy",
    "Predicate": "authorization.predicates",
    "Question": "authorization.questions",
    "QuestionBox": "authorization.question_box",
    "Reply": "surface",
    "Sampling": "upstream_requests",
    "ServeSettings": "server",
    "ServerConfig": "config",
    "ServerStatus": "server_status",
    "Session": "sessions",
    "ToolDetails": "tool_details",
    "UnknownToolError": "errors",
    "UpstreamError": "errors",
    "Verdict": "authorization.questions",
    "tool_definitions": "surface",
}

__all__ = [
    "Answer",
    "Answerer",
    "Broker",
    "BrokerError",
    "BrokerServer",
    "CallRecord",
    "Catalog",
    "CatalogEntry",
    "CheckMode",
    "CheckedScript",
    "Config",
    "ConfigError",
    "Denial",
    "ExecutionError",
    "ExecutionResult",
    "Extraction",
    "Form",
    "FormReply",
    "Grant",
    "KeptOutputs",
    "PatternError",
    "PendingCall",
    "PolicyConfig",
    "Predicate",
    "Question",
    "QuestionBox",
    "Reply",
    "Sampling",
    "ServeSettings",
    "ServerConfig",
    "ServerStatus",
    "Session",
    "ToolDetails",
    "UnknownToolError",
    "UpstreamError",
    "Verdict",
    "tool_definitions",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
