"""Workloads that a search runs on, cut at a time."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stowage.analysis.simulation.timeline import Workload
from stowage.analysis.tuning.arrival_parts import FirstArrivals, LaterArrivals
from stowage.cli.simulate.policies import ConfiguredPolicy
from stowage.experiments.experiment import Experiment
from stowage.experiments.workload_experiment import Fingerprints, WorkloadExperiment


class WorkloadData(msgspec.Struct, frozen=True):
    """See `TuningData`.

    Attributes:
        workloads: The workloads, whole.
        share: The first part of the time of each, between 0 and 1.
    """

    workloads: Sequence[Workload]
    share: float

    @property
    def num_traces(self) -> int:
        """See `TuningData`."""
        return len(self.workloads)

    @property
    def parts(self) -> tuple[str, str]:
        """See `TuningData`."""
        names = ", ".join(each.name for each in self.workloads)
        return f"the first {self.share:.0%} of the time of {names}", "the rest of the time"

    @property
    def extended_resources(self) -> Sequence[str]:
        """See `TuningData`."""
        return ()

    def first(self, policy: ConfiguredPolicy, seeds: Sequence[int]) -> list[Experiment]:
        """See `TuningData`."""
        return [
            WorkloadExperiment(FirstArrivals(each, self.share), policy, seed)
            for each in self.workloads
            for seed in seeds
        ]

    def held_back(self, policy: ConfiguredPolicy, seeds: Sequence[int]) -> list[Experiment]:
        """See `TuningData`."""
        return [
            WorkloadExperiment(LaterArrivals(each, self.share), policy, seed)
            for each in self.workloads
            for seed in seeds
        ]

    def fingerprint(self, policy: ConfiguredPolicy, seeds: Sequence[int]) -> str:
        """See `TuningData`."""
        fingerprints = Fingerprints()
        made = (fingerprints.of(each, policy, seed) for each in self.workloads for seed in seeds)
        return "".join([*made, str(self.share)])
