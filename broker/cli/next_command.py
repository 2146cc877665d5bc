"""Completes the commands that a text tells people to type with the options that this command was given.

Above: whatever prints such a text. Below: store_files.py. Texts from below the command line name a command in
backquotes and do not know which config was named on this command line, or which store in its environment.
"""

from __future__ import annotations

import os
import re
import shlex

from broker.store_files import VARIABLE

CONFIGURED = frozenset(
    {"run", "check", "serve", "stubs", "doctor", "replay", "resume", "tools list", "tools servers", "tools search"}
    | {"tools show", "policy test", "mcp login", "mcp logout", "mcp add", "mcp import", "mcp remove"}
)
"""The commands that have --config."""

ISOLATED = frozenset({"run", "resume"})
"""The commands that have --isolation."""

_COMMAND = re.compile(r"`codemode ([^`]+)`")
_NAME_WORDS = 2


def whole(text: str, request: object) -> str:
    """Return the text with commands that work as they are written, in the same shell and folder.

    Args:
        text: Has commands in backquotes.
        request: The arguments of this command; its `config` and `isolation` count, where it has them.
    """
    config, isolation = (getattr(request, name, None) for name in ("config", "isolation"))
    store = os.environ.get(VARIABLE)

    def made_whole(found: re.Match[str]) -> str:
        words = found[1]
        first = words.split()
        names = {first[0], " ".join(first[:_NAME_WORDS])}
        if config is not None and names & CONFIGURED and "--config" not in first:
            words += f" --config {shlex.quote(str(config))}"
        if isolation is not None and names & ISOLATED and "--isolation" not in first:
            words += f" --isolation {isolation}"
        return f"`{f'{VARIABLE}={shlex.quote(store)} ' if store else ''}codemode {words}`"

    return _COMMAND.sub(made_whole, text)
