"""The tools of all servers: under their names, as they change, and what they are found by."""
