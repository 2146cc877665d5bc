"""The `sandbox` section of the config: where scripts run and within what bounds.

Above: config.py. Below: pydantic, and the sandbox's own models, which check themselves.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from sandbox import Isolation, Limits, Pool, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


class SandboxSettings(BaseModel):
    """Where scripts run and within what bounds.

    Attributes:
        isolation: `process` runs scripts in confined worker processes, `thread` in the broker's own process, with one
            wall less.
        pool: How many instances each process keeps ready; 0 makes each when its run begins.
        pool_idle_seconds: After so long without a run they are given up.
        limits: Bounds of a run that brings none of its own, by the names of `sandbox.Limits`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    isolation: Isolation = "process"
    pool: int = Field(default=Pool().size, ge=0, le=1_000)
    pool_idle_seconds: float = Field(default=Pool().idle_seconds, gt=0, le=86_400, allow_inf_nan=False)
    limits: Limits = Limits()

    @field_validator("limits", mode="plain")
    @classmethod
    def _checked(cls, given: Any) -> Limits:
        if isinstance(given, Limits):
            return given
        if not isinstance(given, dict):
            raise PydanticCustomError("sandbox_limits", "must be a JSON object")
        known = [field.name for field in fields(Limits)]
        unknown = [key for key in given if key not in known]
        if unknown:
            said = f"unknown key {unknown[0]!r}; known are {', '.join(known)}"
            raise PydanticCustomError("sandbox_limits", "{said}", {"said": said})
        try:
            return Limits(**given)
        except ValueError as error:
            raise PydanticCustomError("sandbox_limits", "{said}", {"said": str(error)}) from None

    def open(
        self,
        image: str | None,
        *,
        isolation: Isolation | None = None,
        compiling: Callable[[str], AbstractContextManager[object]] = nullcontext,
    ) -> Sandbox:
        """Make the sandbox that these settings describe; `isolation` goes before theirs."""
        return Sandbox(
            component=image,
            limits=self.limits,
            isolation=isolation or self.isolation,
            pool=Pool(self.pool, self.pool_idle_seconds) if self.pool else None,
            compiling=compiling,
        )
