"""What a stub raises: the tree that scripts catch. Its names are in `codemode`'s documentation for script authors.

ToolError                      the tool said `isError`, or its server answered with a protocol error
├── ToolArgumentsError         the arguments do not fit the stub or the tool's input schema; nothing was sent
├── ToolRefusedError           the call was not allowed; nothing was sent
├── ToolDescriptionRequired    the tool's description has not been fetched yet; nothing was sent
├── ToolNotFoundError          there is no such tool
├── ToolTimeoutError           no answer in time; the tool may have done its work
├── ToolUnavailableError       the server is down; nothing was sent
├── ToolOutcomeUnknown         sent, but the answer was lost; the tool may have done its work
└── ToolResultError            the tool answered with something that its output schema or our bounds do not allow
"""


class ToolError(Exception):
    """A tool call failed.

    Attributes:
        server: Name of the MCP server, as configured.
        tool: Name of the tool, as the server spells it.
        message: What went wrong.
        content: The result's content blocks, when the tool answered.
        structured_content: The result's structured content, when the tool answered with some.
    """

    def __init__(self, message="", *, server=None, tool=None, content=None, structured_content=None):
        super().__init__(message)
        self.message = message
        self.server = server
        self.tool = tool
        self.content = content
        self.structured_content = structured_content


class ToolArgumentsError(ToolError, TypeError):
    """The arguments do not fit; nothing was sent."""


class ToolRefusedError(ToolError, PermissionError):
    """The call was not allowed; nothing was sent."""

    __str__ = Exception.__str__


class ToolDescriptionRequired(ToolError):
    """The tool's description has to be fetched first; nothing was sent."""


class ToolNotFoundError(ToolError, AttributeError):
    """There is no such tool; the message suggests the nearest."""

    # Python sets the name that was looked up, to append a suggestion of its own to ours.
    name = property(lambda _self: None, lambda _self, _name: None)


class ToolTimeoutError(ToolError, TimeoutError):
    """No answer in time. The tool may have done its work."""

    __str__ = Exception.__str__


class ToolUnavailableError(ToolError, ConnectionError):
    """The server is down; nothing was sent."""

    __str__ = Exception.__str__


class ToolOutcomeUnknown(ToolError):
    """The call was sent and its answer was lost. The tool may have done its work."""


class ToolResultError(ToolError):
    """The tool's answer breaks its output schema or a bound."""


TREE = {cls.__name__: cls for cls in (ToolError, *ToolError.__subclasses__())}


def from_completion(error: dict) -> ToolError:
    """Build the exception that a failed completion stands for."""
    cls = TREE.get(error["kind"], ToolError)
    details = error["details"]
    return cls(
        error["message"],
        server=details.get("server"),
        tool=details.get("tool"),
        content=details.get("content"),
        structured_content=details.get("structured_content"),
    )


for _cls in TREE.values():
    _cls.__module__ = "tools"
