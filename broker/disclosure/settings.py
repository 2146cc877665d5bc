"""The config section `disclosure`: what is described from the start, how tools are searched and grouped.

Above: config.py has it as one field, and the broker loads the embedder that it names. Below: pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from broker.errors import ConfigError

if TYPE_CHECKING:
    from broker.search import Embedder

CategoryName = Annotated[str, Field(min_length=1, max_length=80)]
ToolPattern = Annotated[str, Field(min_length=1, max_length=256)]


class CategorySettings(BaseModel):
    """One category of the operator; a list of patterns is one without a description.

    Attributes:
        description: What its tools are for, in a line.
        tools: Patterns of `server.tool`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str | None = Field(default=None, min_length=1, max_length=300)
    tools: tuple[ToolPattern, ...]

    @model_validator(mode="before")
    @classmethod
    def _of_patterns(cls, given: Any) -> Any:
        return {"tools": given} if isinstance(given, list | tuple) else given


class DisclosureSettings(BaseModel):
    """How much of the tools is shown when.

    Attributes:
        describe: With `auto`, all tools are described from the start while their full definitions fit into a share
            of the model's context window; with `on-request`, only those that are fetched.
        context_share: That share, from 0.01 to 0.05.
        context_tokens: The size of the window.
        search: How tools are searched where nobody says: by words, or by words and meaning together.
        embedder: Where to get the embedder from, as `package.module:Name`; called without arguments.
        categories: The operator's categories, by name.
        fetches_per_minute: How often a session may fetch descriptions, any number of tools at a time; of a server, all
            sessions of a caller together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    describe: Literal["on-request", "auto"] = "on-request"
    context_share: float = Field(default=0.03, ge=0.01, le=0.05)
    context_tokens: int = Field(default=200_000, ge=1_000, le=100_000_000)
    search: Literal["auto", "keyword", "hybrid"] = "auto"
    embedder: str | None = Field(default=None, pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    categories: dict[CategoryName, CategorySettings] = {}
    fetches_per_minute: int = Field(default=120, ge=1, le=1_000_000)


def load_embedder(config: DisclosureSettings) -> Embedder | None:
    """Return the embedder that a config names, or None.

    Raises:
        ConfigError: There is none of that name, or it cannot be made.
    """
    if config.embedder is None or config.search == "keyword":
        if config.search == "hybrid":
            raise ConfigError("disclosure.search", ["is 'hybrid', which needs 'embedder': \"package.module:Name\""])
        return None
    from broker.search.vectors import check_embedder  # noqa: PLC0415  # a config alone needs no search

    module, _, name = config.embedder.partition(":")
    try:
        embedder = cast("Embedder", getattr(import_module(module), name)())
        check_embedder(embedder)
    except Exception as error:  # the operator's own code, loaded at their word
        said = f"{config.embedder} cannot be used: {type(error).__name__}: {error}"
        raise ConfigError("disclosure.embedder", [said]) from error
    return embedder
