"""Runs one experiment."""

from __future__ import annotations

from stowage.analysis.simulation.policy import Policy
from stowage.analysis.simulation.result import ExperimentResult
from stowage.analysis.simulation.timeline import Workload


def simulate(workload: Workload, policy: Policy, seed: int) -> ExperimentResult:
    """Let the policy decide about the pods of a workload, in virtual time.

    Args:
        workload: Nodes and pods over time.
        policy: Makes the engine.
        seed: Seed of the arrivals and of ties.

    Raises:
        ExperimentFailed: A plugin raised, or an object cannot be used.
    """
    raise NotImplementedError
