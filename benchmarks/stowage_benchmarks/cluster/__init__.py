"""``stowage bench cluster``: cost of the simulated cluster itself."""
