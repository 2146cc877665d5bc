"""A tool's definition to its stub, as text that was proved harmless; kept by the tool's digest."""
