"""Room ``framework``."""
