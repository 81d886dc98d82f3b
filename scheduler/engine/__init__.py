"""Room ``engine``."""
