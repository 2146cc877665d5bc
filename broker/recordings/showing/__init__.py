"""What recordings are looked at for: a run as a picture and as a page, the types of what tools returned."""
