"""What calls, scripts and sessions cost, beside the same calls made directly and beside fastmcp's code mode."""
