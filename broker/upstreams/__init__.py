"""The servers that the broker calls: each a task with a connection, its listing, its calls, its login."""
