"""What a decision costs."""
