"""The MCP host: connects to servers, runs scripts in the sandbox and answers their tool calls, each authorized.

Composes `codegen` and `sandbox`, which know nothing of it.
"""

from broker.authorize import Denial, Grant, PendingCall
from broker.broker import Broker
from broker.catalog import Catalog, CatalogEntry
from broker.config import Config, ServerConfig
from broker.consent import Answer, Answerer, Question
from broker.errors import BrokerError, ConfigError, PatternError, UnknownToolError, UpstreamError
from broker.execution import ExecutionError, ExecutionResult
from broker.sessions import Session, ToolDetails
from broker.tool_calls import CallRecord
from broker.upstream import ServerStatus

__all__ = [
    "Answer",
    "Answerer",
    "Broker",
    "BrokerError",
    "CallRecord",
    "Catalog",
    "CatalogEntry",
    "Config",
    "ConfigError",
    "Denial",
    "ExecutionError",
    "ExecutionResult",
    "Grant",
    "PatternError",
    "PendingCall",
    "Question",
    "ServerConfig",
    "ServerStatus",
    "Session",
    "ToolDetails",
    "UnknownToolError",
    "UpstreamError",
]
