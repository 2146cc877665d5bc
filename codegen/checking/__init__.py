"""A script against the stubs: what the type checker finds, which of it is certain, and what to say about that."""
