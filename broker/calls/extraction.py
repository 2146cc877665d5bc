"""`extract` in scripts: the model that the embedding program or the client gives reads a text as a type.

Above: tool_calls.py, which decides about it as about a call of a tool. Below: model_calls.py, json_schema.py. What a
script sends is checked like anything else that it writes, and so is what the model answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from broker.authorization.model_calls import SERVER, TOOL
from broker.callbacks import NoReplyError, awaited, failing_alone
from broker.calls.json_schema import first_fault
from broker.calls.result_values import bounded
from broker.errors import UnfitResultError
from broker.logging import logger
from broker.texts import call_texts
from sandbox import Failed, Returned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.authorization.calls import PendingCall
    from broker.authorization.forms import Person
    from sandbox import Completion

MAX_CHARACTERS = 400_000
"""Of a text that is read, and of the instructions for it."""


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


Extractor: TypeAlias = "Callable[[Extraction], Awaitable[Any]]"
"""Asks a model, and returns its answer as JSON data; raises `broker.errors.UnfitResultError` if the answer is none."""


@dataclass(frozen=True, slots=True)
class CalledModel:
    """The model, as one call of `extract` reaches it. `Callee` says what each method is."""

    pending: PendingCall
    extractor: Extractor

    def fault(self) -> Failed | None:
        """Return why the model cannot be asked this."""
        match self.pending.arguments:
            case {"value": str(value), "schema": dict(), "instructions": str()}:
                is_long = len(value) > MAX_CHARACTERS
                return _failed("ToolArgumentsError", call_texts.extract_reads(MAX_CHARACTERS)) if is_long else None
        return _failed("ToolArgumentsError", call_texts.EXTRACT_TAKES)

    def overtaken(self) -> Failed | None:
        """Return None: what `extract` takes does not change."""
        return None

    def refused(self, reason: str) -> Failed:
        """Return the failure of a call that was not allowed, or could not be recorded."""
        return _failed("ToolRefusedError", reason)

    async def reach(self) -> Failed | None:
        """Return None: the model is there."""
        return None

    async def send(self, person: Person | None) -> Completion:  # noqa: ARG002  # a model asks nothing back
        """Ask the model, and check its answer against the type."""
        arguments = self.pending.arguments
        schema, instructions = arguments["schema"], arguments["instructions"][:MAX_CHARACTERS]
        try:
            with failing_alone():
                extraction = Extraction(arguments["value"], schema, instructions)
                answer = await awaited("extractor", self.extractor(extraction))
            found = bounded(answer)
        except UnfitResultError as error:
            return _failed("ToolResultError", call_texts.extract_got(f"it {error}"))
        except NoReplyError as error:
            logger().warning("the extractor failed", reason=str(error))
            return _failed("ToolError", call_texts.MODEL_FAILED)
        except Exception:  # noqa: BLE001  # the embedding program's own code
            logger().exception("the extractor failed")
            return _failed("ToolError", call_texts.MODEL_FAILED)
        fault = first_fault(found, schema, keep=False)
        return Returned(found) if fault is None else _failed("ToolResultError", call_texts.extract_got(fault))


def no_model() -> Failed:
    """Return the failure of a call of `extract` where no model was given."""
    return _failed("ToolUnavailableError", call_texts.NO_MODEL)


def _failed(kind: str, message: str) -> Failed:
    return Failed(kind, message, {"server": SERVER, "tool": TOOL})
