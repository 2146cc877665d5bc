"""How fast the tiers of tools are made, and how much they save."""
