"""What a script can ask of the host beside its tools: `display`, `read_bytes`, `extract`.

Above: execution.py, which sends calls without a dot in their name here. Below: content_blocks.py, and the model that
the embedding program gives for `extract`. What a script sends is checked like anything else that it writes.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.calls.content_blocks import ContentBlocks, base64_of, block_of, decodes, is_whole
from broker.calls.json_schema import first_fault
from broker.logging import logger
from broker.texts import call_texts
from sandbox import Completion, Failed, Returned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.recordings.recording import Recording
    from sandbox import Call

_MIME_TYPE = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,64}")
_VALUE_CHARACTERS = 400_000


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a script wants a model to read.

    Attributes:
        value: The text to read, mostly a tool's; untrusted.
        schema: JSON Schema that the answer has to fit.
        instructions: What the script says about it; may be empty.
    """

    value: str
    schema: dict[str, Any]
    instructions: str


if TYPE_CHECKING:
    # Asks a model, and returns its answer as JSON data.
    Extractor = Callable[[Extraction], Awaitable[Any]]


@dataclass(frozen=True)
class ScriptFunctions:
    """The host's side of the three functions, for one run."""

    blocks: ContentBlocks
    extractor: Extractor | None = None

    def restore(self, before: Recording) -> None:
        """Keep the blocks that a run had before it was interrupted, and show again what it displayed."""
        for story in before.calls.values():
            if story.kept is not None and story.answered is not None:
                for name, block in story.kept.blocks.items():
                    self.blocks.put_back(name, before.load(block))
        for number, story in before.calls.items():
            arguments = story.arguments if story.function == "display" else None
            if isinstance(arguments, dict) and story.answered is not None and not story.has_failed:
                self._display(arguments, number)

    async def answer(self, call: Call) -> Completion:
        """Answer a call of one of them. Never raises for what a script can cause."""
        match call.function:
            case "display":
                return self._display(call.arguments, call.id)
            case "read_bytes":
                return self._read_bytes(call.arguments)
            case "extract":
                return await self._extract(call.arguments)
        return Failed("ToolNotFoundError", call_texts.no_function(call.function))

    def _display(self, arguments: dict[str, Any], order: int) -> Completion:
        match arguments:
            case {"id": name}:
                block = self.blocks.find(name)
            case {"mime_type": str(mime_type), "data": str(data)} if _MIME_TYPE.fullmatch(mime_type) and decodes(data):
                block = block_of(mime_type, data)
            case _:
                block = None
        if block is None or not is_whole(block):
            # The script is not told, for it does not wait: the reply to its run says so.
            self.blocks.left_out += 1
            return Failed("ToolError", call_texts.NOTHING_TO_DISPLAY)
        self.blocks.display(block, order)
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

    async def _extract(self, arguments: dict[str, Any]) -> Completion:
        if self.extractor is None:
            return Failed("ToolUnavailableError", call_texts.NO_MODEL)
        match arguments:
            case {"value": str(value), "schema": dict(schema), "instructions": str(instructions)}:
                pass
            case _:
                return Failed("ToolArgumentsError", call_texts.EXTRACT_TAKES)
        if len(value) > _VALUE_CHARACTERS:
            return Failed("ToolArgumentsError", call_texts.extract_reads(_VALUE_CHARACTERS))
        try:
            found = await self.extractor(Extraction(value, schema, instructions[:_VALUE_CHARACTERS]))
        except Exception:  # noqa: BLE001  # the embedding program's own code
            logger().exception("the extractor failed")
            return Failed("ToolError", call_texts.MODEL_NOT_ASKED)
        fault = first_fault(found, schema, keep=False)
        if fault is not None:
            return Failed("ToolResultError", call_texts.extract_got(fault))
        return Returned(found)
