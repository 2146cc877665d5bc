"""What a decision costs, and whether the audit matches what servers were asked."""
