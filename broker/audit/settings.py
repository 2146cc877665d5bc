"""How long the audit is kept: the `audit` section of a config.

Above: config.py, log.py. Below: pydantic.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class AuditSettings(BaseModel):
    """The `audit` section: how long records are kept. Left out, for ever.

    Attributes:
        days: Older ones are removed, a few thousand at a time.
        records: All but so many of the newest are; a call makes two, of about a kilobyte each.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    days: float | None = Field(default=None, gt=0, le=36_500, allow_inf_nan=False)
    records: int | None = Field(default=None, ge=1_000)
