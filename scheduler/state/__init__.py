"""Room ``state``."""
