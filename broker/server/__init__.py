"""`codemode serve`: the surface as an MCP server, over stdio and streamable HTTP, in both protocol eras.

`settings.py` is read by every config, so nothing of the SDK is loaded before `BrokerServer` is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from broker.server.settings import OAuthSettings, ServeSettings

if TYPE_CHECKING:
    from broker.server.app import BrokerServer

__all__ = ["BrokerServer", "OAuthSettings", "ServeSettings"]


def __getattr__(name: str) -> Any:
    if name == "BrokerServer":
        return import_module("broker.server.app").BrokerServer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
