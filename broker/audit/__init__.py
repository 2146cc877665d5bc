"""The audit: records of attempts and results, chained so that a change shows."""
