"""Structured logs: format, level and output.

`stowage.cli` calls `configure_logging` once; modules log through structlog. Rejected: writing to
stderr directly, because a reader of stderr that stopped made a leader lose its lease.
"""
