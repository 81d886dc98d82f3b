"""Fault injection: refused, delayed, lost and broken answers."""
