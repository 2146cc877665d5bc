"""What is measured, in what unit, and what the project wants of it in each isolation."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table; `key` names it in the JSON, the goals are for thread and process isolation."""

    key: str
    what: str
    unit: str
    thread_goal: float | None = None
    process_goal: float | None = None


ROWS = (
    Row("pooled", "print(1), from the pool, after 30 ms of nothing", "ms", 0.5, 0.9),
    Row("pooled_at_once", "print(1), from the pool, back to back", "ms", 0.5, 0.9),
    Row("pause", "Python code after such a pause against back to back", "times"),
    Row("wake", "a byte to another process and back", "µs"),
    Row("fresh", "print(1), fresh instance", "ms", 2, 2.5),
    Row("kernel", "print(1), in a kernel", "ms", 0.3, 0.6),
    Row("call", "sequential call", "µs", 60, 200),
    Row("gathered", "call in a gather of 1,000", "µs", 20, 30),
    Row("cpu_loop", "loop of 3,000,000 additions", "ms"),
    Row("two_over_one", "two such loops against one", "times", 1.15, 1.15),
    Row("value_in", "300 KB answer to a call", "ms", 5, 5),
    Row("value_out", "300 KB as the script's value", "ms", 5, 5),
    Row("long_script", "script of 2,000 lines, added", "ms", 20, 20),
    Row("suspended", "1,000 suspended scripts, private", "GB", 1.8, 1.8),
)
