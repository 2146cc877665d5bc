"""A recorded run taken again, on its own answers or on new ones, and compared with what was recorded."""
