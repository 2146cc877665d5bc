"""What was described to a session, and the one way to describe it."""
