"""`help` for scripts: of tools and servers it shows the stubs, of anything else what Python's own shows."""

import builtins
import pydoc


def install() -> None:
    """Replace the builtin, which would begin a conversation."""
    builtins.help = show


def show(*values) -> None:
    """Print what is known of these values: help(tool) its stub, help(server) its tools."""
    if not values:
        print("help(tool) shows a tool's stub, help(server) its tools, help(value) the documentation of a value")
    for value in values:
        text = getattr(type(value), "__help__", None)
        if text is None:
            pydoc.help(value)
        else:
            print(text(value))
