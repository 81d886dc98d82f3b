"""Room ``cluster``."""
