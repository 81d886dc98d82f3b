"""Room ``api``."""
