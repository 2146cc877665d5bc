"""A run written down before what is written takes effect, and gone on with from what was written."""
