"""Room ``queue``."""
