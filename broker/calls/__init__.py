"""The one path from a stub to `tools/call`, and what comes back on it."""
