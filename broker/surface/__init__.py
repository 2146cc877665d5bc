"""What a model is given: three tools, their texts, and their replies. Knows nothing of MCP transports.

`Surface.dispatch` answers a call of any of them; `tool_definitions` describes them for an API.
"""

from broker.surface.definitions import ToolFormat, tool_definitions
from broker.surface.dispatch import Surface
from broker.surface.outputs import KeptOutputs
from broker.surface.replies import Reply

__all__ = ["KeptOutputs", "Reply", "Surface", "ToolFormat", "tool_definitions"]
