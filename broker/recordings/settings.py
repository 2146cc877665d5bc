"""The `recordings` section of the config.

Above: config.py. Below: pydantic.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field

UnknownOutcome: TypeAlias = Literal["fail", "ask", "repeat"]
UNKNOWN_OUTCOMES: tuple[UnknownOutcome, ...] = get_args(UnknownOutcome)


class RecordingSettings(BaseModel):
    """How runs are recorded, and what becomes of those that were interrupted.

    Attributes:
        mode: `full` keeps everything that a replay needs, `metadata` names, times and sizes only, `off` nothing.
        max_mib: When all recordings together are larger, the oldest ended ones are removed.
        max_run_mib: A run of which so much is recorded makes no further call, and is stopped.
        max_days: Recordings that ended, or were imported, longer ago are removed.
        resume: `automatic` resumes interrupted runs when `codemode serve` starts.
        unknown_outcome: What a resumed run does about a call that was sent and whose answer is not known: `fail` it in
            the script, `ask` a person whether to send it again, or `repeat` it if a trusted server marks the tool
            idempotent or read-only.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["off", "metadata", "full"] = "full"
    max_mib: int = Field(default=1024, ge=1, le=1_048_576)
    max_run_mib: int = Field(default=512, ge=1, le=1_048_576)
    max_days: int = Field(default=30, ge=1, le=36_500)
    resume: Literal["manual", "automatic"] = "manual"
    unknown_outcome: UnknownOutcome = "ask"
