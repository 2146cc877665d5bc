"""One run of a script: prepared, checked, carried out, parked, and put in its envelope."""
