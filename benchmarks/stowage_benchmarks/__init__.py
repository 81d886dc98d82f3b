"""The benchmarks behind ``stowage bench``.

``e2e`` measures the whole product: it creates pods, starts a scheduler and counts the bindings that
a watch sees. ``steady`` does so with pods that come at a constant rate. ``core`` measures the
engine alone, ``steps`` the longest step of the scheduling loop, ``cluster`` the simulated API
server alone. ``questions`` and ``console`` measure answers about a large cluster, and
``simulation`` simulations in virtual time. ``chaos`` runs replicas under faults and checks the
guarantees: the cluster writes a history, and ``chaos.ledger`` judges it. ``workloads`` holds the
shapes of nodes and pods that all of them use.
"""

from stowage_benchmarks.command import app

__all__ = ["app"]
