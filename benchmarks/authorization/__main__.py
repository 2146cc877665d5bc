"""What authorization costs, and whether its records hold: `python -m benchmarks.authorization [decisions|kills]`.

`decisions`: the time of a decision with 200 rules and 200 grants. `kills`: 10,000 calls by brokers that are killed at
random points, and the audit compared with the log of the server. Both without an argument.
"""

from __future__ import annotations

import argparse

from benchmarks.authorization import decisions, kills

PARTS = {"decisions": decisions.main, "kills": kills.main}


def main() -> None:
    """Run the part that was named, or both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.authorization", description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS)
    part = parser.parse_args().part
    for name in [part] if part else PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
