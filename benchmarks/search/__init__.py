"""How well and how fast tools are found."""
