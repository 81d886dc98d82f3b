"""Room ``cycle``."""
