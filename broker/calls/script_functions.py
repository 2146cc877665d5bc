"""What a script can ask of the host itself: `display` and `read_bytes`.

Above: run_calls.py. Below: content_blocks.py. Both concern only what the run already has, so nobody decides about them.
What a script sends is checked like anything else that it writes.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.calls.content_blocks import ContentBlocks, base64_of, block_of, decodes, is_whole
from broker.texts import call_texts
from sandbox import Completion, Failed, Returned

if TYPE_CHECKING:
    from broker.recordings.recording import Recording
    from sandbox import Call

_MIME_TYPE = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,64}")


@dataclass(frozen=True)
class ScriptFunctions:
    """The host's side of both, for one run."""

    blocks: ContentBlocks

    def restore(self, before: Recording) -> None:
        """Keep the blocks that a run had before it was interrupted, and show again what it displayed."""
        for story in before.calls.values():
            if story.kept is not None and story.answered is not None:
                server = story.function.partition(".")[0] if story.sent is None else story.sent.server
                for name, block in story.kept.blocks.items():
                    self.blocks.put_back(name, before.load(block), server)
        for number, story in before.calls.items():
            arguments = story.arguments if story.function == "display" else None
            if isinstance(arguments, dict) and story.answered is not None and not story.has_failed:
                self._display(arguments, number)

    def answer(self, call: Call) -> Completion:
        """Answer a call of one of them. Never raises for what a script can cause."""
        match call.function:
            case "display":
                return self._display(call.arguments, call.id)
            case "read_bytes":
                return self._read_bytes(call.arguments)
        return Failed("ToolNotFoundError", call_texts.no_function(call.function))

    def _display(self, arguments: dict[str, Any], order: int) -> Completion:
        server = None
        match arguments:
            case {"id": name}:
                block, server = self.blocks.find(name), self.blocks.server_of(name)
            case {"mime_type": str(mime_type), "data": str(data)} if _MIME_TYPE.fullmatch(mime_type) and decodes(data):
                block = block_of(mime_type, data)
            case _:
                block = None
        if block is None or not is_whole(block):
            # The script is not told, for it does not wait: the reply to its run says so.
            self.blocks.left_out += 1
            return Failed("ToolError", call_texts.NOTHING_TO_DISPLAY)
        self.blocks.display(block, order, server)
        return Returned(None)

    def _read_bytes(self, arguments: dict[str, Any]) -> Completion:
        block = self.blocks.find(arguments.get("id"))
        if block is None:
            return Failed("ToolError", call_texts.NO_BLOCK)
        resource = block.get("resource")
        data = base64_of(block)
        if data is None and isinstance(resource, dict):
            data = base64.b64encode(str(resource.get("text", "")).encode("utf-8", "replace")).decode()
        if data is None or not decodes(data):
            return Failed("ToolResultError", call_texts.NO_BASE64)
        return Returned(data)
