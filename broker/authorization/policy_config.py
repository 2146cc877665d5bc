"""What the operator configured: the `policy` section of a config, as it is written.

Above: config.py, which reads it, and policy.py, which applies it. Below: predicates.py. Everything that can be wrong
with a policy is found when it is read, never when a call is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from broker.authorization.patterns import check_tool_pattern
from broker.authorization.predicates import ArgumentTest, Pointer, Predicate
from broker.errors import PatternError

if TYPE_CHECKING:
    from collections.abc import Mapping

Effect: TypeAlias = Literal["allow", "ask", "deny"]
COPIED = "copied"
"""The label of a call whose arguments hold text of another server's result; no server can be given it."""


def _tool_pattern(pattern: str) -> str:
    try:
        return check_tool_pattern(pattern)
    except PatternError as error:
        raise PydanticCustomError("impossible", "{what}", {"what": str(error)}) from None


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Text = Annotated[str, Field(max_length=1_000)]
_Name = Annotated[str, Field(min_length=1, max_length=300)]
_Names = Annotated[
    tuple[_Name, ...], BeforeValidator(_as_list, json_schema_input_type=_Name | tuple[_Name, ...]), Field(min_length=1)
]
_ToolPattern = Annotated[str, Field(max_length=600), AfterValidator(_tool_pattern)]
_ToolPatterns = Annotated[
    tuple[_ToolPattern, ...],
    BeforeValidator(_as_list, json_schema_input_type=_ToolPattern | tuple[_ToolPattern, ...]),
    Field(min_length=1),
]
_Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
_Digests = Annotated[
    tuple[_Digest, ...],
    BeforeValidator(_as_list, json_schema_input_type=_Digest | tuple[_Digest, ...]),
    Field(min_length=1),
]
Label = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
_Count = Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Hints(_Section):
    """What a server says about its tool. Believed only where it has `trust_annotations`.

    What is not said, or not believed, matches no rule that allows, and may match others.
    """

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Hints:
        if not any(value is not None for value in self.__dict__.values()):
            raise PydanticCustomError("impossible", "names no hint; remove it or name one")
        return self


class Rule(_Section):
    """Calls, and what to do with them. Everything that is given must match; the first rule that matches decides.

    One before it decides instead if it may match, for all that is known, and allows less.

    Attributes:
        name: What explanations call it.
        tools: Patterns of `server.tool`, one or a list.
        annotations: What trusted servers say about the tool.
        arguments: JSON pointers to tests, all of which must hold.
        sessions: Patterns of the names that a program gives its sessions; other names are drawn.
        principals: Patterns of authenticated principals.
        scripts: `sha256:` digests of scripts.
        digests: `sha256:` digests of tool definitions.
        effect: `allow`; `ask`, which a grant can answer; `deny`, which nothing overrides.
        reason: For the person who is asked, the script that is refused, and the audit.
    """

    name: _Text = ""
    tools: _ToolPatterns
    annotations: Hints | None = None
    arguments: dict[Pointer, ArgumentTest] = {}
    sessions: _Names | None = None
    principals: _Names | None = None
    scripts: _Digests | None = None
    digests: _Digests | None = None
    effect: Effect
    reason: _Text = ""

    @model_validator(mode="after")
    def _possible(self) -> Rule:
        try:
            Predicate(self.arguments)
        except PatternError as error:
            raise PydanticCustomError("impossible", "{what}", {"what": str(error)}) from None
        return self


class Quota(_Section):
    """How often tools may be called.

    Attributes:
        name: What refusals call it.
        tools: Patterns of `server.tool`, one or a list; their calls are counted together.
        each_tool: Count each tool by itself.
        per_minute: Calls within any 60 seconds, of all sessions; more are refused.
        per_run: Calls of one run; more are refused.
        concurrent: Calls at once, of all sessions; more wait for their turn.
    """

    name: _Text = ""
    tools: _ToolPatterns
    each_tool: bool = False
    per_minute: _Count | None = None
    per_run: _Count | None = None
    concurrent: _Count | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Quota:
        if self.per_minute is None and self.per_run is None and self.concurrent is None:
            raise PydanticCustomError("impossible", "limits nothing; give 'per_minute', 'per_run' or 'concurrent'")
        return self


class Flow(_Section):
    """What happens to a call to a server labelled `to` after a result of one labelled `from`. The first fit decides.

    Attributes:
        source: `from`: a label, or `copied` for arguments that hold text of another server's result.
        to: A label.
        effect: `ask` is answered only by a person who was shown the flow, or by a grant that names the label.
        reason: As in a rule.
    """

    source: Label = Field(validation_alias="from", serialization_alias="from")
    to: Label
    effect: Effect
    reason: _Text = ""


class PolicyConfig(_Section):
    """The `policy` section.

    Attributes:
        rules: In order; the first that matches decides, and a call that none matches is asked about. Left out, reads
            of servers with `trust_annotations` are allowed and everything else is asked; an empty list allows nothing.
        quotas: How often tools may be called, whoever allowed them.
        flows: What may go from server to server, by label. Left out, `private` and `untrusted` to `egress` ask.
        labels: Labels of the servers that have none of their own.
        model_labels: Labels of the model behind `extract`, which rules and quotas call `@model.extract`; left out, it
            has those of servers that have none of their own.
        flow_memory: Whether labels that were received count until the run ends, or until the session does.
        answer_timeout_seconds: How long a person has for an answer; none in time is a refusal.
    """

    rules: tuple[Rule, ...] | None = None
    quotas: tuple[Quota, ...] = ()
    flows: tuple[Flow, ...] | None = None
    labels: tuple[Label, ...] = ()
    model_labels: tuple[Label, ...] | None = None
    flow_memory: Literal["run", "session"] = "run"
    answer_timeout_seconds: float = Field(default=300.0, gt=0, le=7 * 86_400, allow_inf_nan=False)

    @model_validator(mode="after")
    def _known_labels(self) -> PolicyConfig:
        for name, labels in (("labels", self.labels), ("model_labels", self.model_labels or ())):
            if COPIED in labels:
                said = "{name}: 'copied' is what we find ourselves; choose another word"
                raise PydanticCustomError("impossible", said, {"name": name})
        return self


def policy_json_schema() -> dict[str, Any]:
    """Return the published JSON Schema of the `policy` section."""
    schema: Mapping[str, Any] = PolicyConfig.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The `policy` section of a codemode config",
        **{key: value for key, value in schema.items() if key != "title"},
    }
