"""The commands ``stowage cluster`` and ``stowage dump``."""
