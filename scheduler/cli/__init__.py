"""Room ``cli``."""
