"""What `codemode doctor` finds, a line for each thing that has to work.

Above: doctor.py, doctor_store.py, doctor_oauth.py. Below: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found, and what to do when it is wrong."""

    subject: str
    is_right: bool
    found: str
    what_to_do: str = ""
