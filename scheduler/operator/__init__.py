"""Room ``operator``."""
