"""Extenders: which pods wait for an extender's answer, and what follows from it."""
