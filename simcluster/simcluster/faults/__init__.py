"""Faults on request: refused, delayed, lost and broken answers."""
