"""The config: read, checked as a whole, and in words what is wrong with it."""
