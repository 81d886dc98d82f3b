"""Room ``plugins``."""
