"""Room ``binding``."""
