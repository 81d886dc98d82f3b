"""Structured logs: format, level and output."""
