"""What authorization costs, and whether its records hold: `python -m benchmarks.authorization [decisions] [kills]`.

`decisions`: the time of a decision with 200 rules and 200 grants. `kills`: 10,000 calls by brokers that are killed at
random points, and the audit compared with the log of the server. Both without arguments.
"""

from __future__ import annotations

import sys

from benchmarks.authorization import decisions, kills

PARTS = {"decisions": decisions.main, "kills": kills.main}


def main() -> None:
    """Run the parts that were named."""
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
