"""openb traces that a search runs on, cut at a pod."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stowage.analysis.simulation.openb.experiment import OpenbExperiment
from stowage.analysis.simulation.openb.objects import RESOURCE
from stowage.analysis.simulation.openb.trace import OpenbTrace
from stowage.analysis.tuning.arrival_parts import openb_parts
from stowage.cli.simulate.openb_policies import FixedPolicy
from stowage.cli.simulate.policies import ConfiguredPolicy
from stowage.experiments.experiment import Experiment, fingerprint_of
from stowage.experiments.workload_experiment import plugin_versions


class OpenbData(msgspec.Struct, frozen=True):
    """See `TuningData`.

    Attributes:
        traces: The traces, whole.
        share: The first part of the pods of each, between 0 and 1.
    """

    traces: Sequence[OpenbTrace]
    share: float

    @property
    def num_traces(self) -> int:
        """See `TuningData`."""
        return len(self.traces)

    @property
    def parts(self) -> tuple[str, str]:
        """See `TuningData`."""
        names = ", ".join(each.name for each in self.traces)
        return f"the first {self.share:.0%} of the pods of {names}", "the other pods"

    @property
    def extended_resources(self) -> Sequence[str]:
        """See `TuningData`."""
        return (RESOURCE,)

    def first(self, policy: ConfiguredPolicy, seeds: Sequence[int]) -> list[Experiment]:
        """See `TuningData`."""
        return self._experiments(0, policy, seeds)

    def held_back(self, policy: ConfiguredPolicy, seeds: Sequence[int]) -> list[Experiment]:
        """See `TuningData`."""
        return self._experiments(1, policy, seeds)

    def fingerprint(self, policy: ConfiguredPolicy, seeds: Sequence[int]) -> str:
        """See `TuningData`."""
        inputs = (FixedPolicy(policy).inputs, list(seeds), plugin_versions())
        return fingerprint_of(list(self.traces), self.share, *inputs)

    def _experiments(
        self, part: int, policy: ConfiguredPolicy, seeds: Sequence[int]
    ) -> list[Experiment]:
        return [
            OpenbExperiment(openb_parts(each, self.share)[part], FixedPolicy(policy), seed)
            for each in self.traces
            for seed in seeds
        ]
