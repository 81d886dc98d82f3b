"""Benchmarks: what a pod costs, seen from outside.

``workloads`` holds the shapes; ``drain`` measures the whole product: pods are created first, then
a scheduler is started, and the bindings a watch sees are counted. ``report`` prints a result.
``core`` measures the engine alone, ``cluster`` the embedded API server alone.
``chaos`` measures nothing but promises kept: its cluster writes a history (``chaos_history``) that
``chaos_ledger`` judges, whatever ``chaos_trouble`` does to the replicas meanwhile.
"""

from stowage_benchmarks.command import app

__all__ = ["app"]
