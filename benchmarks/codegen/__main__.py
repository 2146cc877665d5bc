"""Prints every figure of `codegen` over the corpus of real tools, which lies beside the repository.

Sections: types, tokens, speed, soundness, guest, calls, suite, fuzz. `--every N` looks at one tool in N. Tokens need
`bpe-openai`; a section whose package is missing says so and is left out.
"""

from __future__ import annotations

import argparse
import importlib
import sys

SECTIONS = ("types", "tokens", "speed", "soundness", "guest", "calls", "suite", "fuzz")


def main() -> int:
    """Run the sections asked for, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.codegen", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=" ".join(SECTIONS))
    parser.add_argument("--every", type=int, default=1, metavar="N", help="look at one tool in N (default: all)")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    for section in options.sections or SECTIONS:
        print(f"\n## {section}")
        try:
            importlib.import_module(f"benchmarks.codegen.{section}").run(options.every)
        except ImportError as error:
            print(f"left out: {error.name} is not installed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
