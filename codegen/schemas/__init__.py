"""A server's schemas to types: rewritten in a closed subset, typed by a generator, with notes for a caller."""
