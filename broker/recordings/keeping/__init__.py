"""Where recordings are: in the store, each with the process that it belongs to, and in files and out of them."""
