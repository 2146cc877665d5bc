"""What `codegen` is measured on: `python -m benchmarks.codegen [SECTION …] [--every N]`."""
