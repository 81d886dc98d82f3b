"""Profiles and the registry: which plugins run, in which order and with which weight."""
