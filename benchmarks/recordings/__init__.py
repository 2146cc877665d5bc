"""What recording, replay, listing, showing and resuming cost."""
