"""An experiment on a workload in virtual time."""

from __future__ import annotations

import gc
from importlib.metadata import entry_points

import msgspec

from stowage.analysis.simulation.policy import Policy
from stowage.analysis.simulation.result import ExperimentResult
from stowage.analysis.simulation.run import simulate
from stowage.analysis.simulation.timeline import Workload
from stowage.experiments.experiment import fingerprint_of

_PLUGINS = "stowage.plugins"


class WorkloadExperiment(msgspec.Struct, frozen=True):
    """One policy on one workload with one seed.

    Attributes:
        workload: Can be pickled.
        policy: Can be pickled.
        seed: Of the arrivals and of ties.
        fingerprint: See `Experiment`.
    """

    workload: Workload
    policy: Policy
    seed: int
    fingerprint: str = ""

    @property
    def key(self) -> str:
        """See `Experiment`."""
        return f"{self.workload.name}/{self.policy.name}/{self.seed}"

    def run(self) -> ExperimentResult:
        """See `Experiment`."""
        try:
            return simulate(self.workload, self.policy, self.seed)
        finally:
            gc.collect()  # an engine has cycles; two large ones need not be there at a time


class Fingerprints:
    """Makes fingerprints of experiments; reads the arrivals of a workload and seed once."""

    def __init__(self) -> None:
        self._of_arrivals: dict[tuple[str, int], str] = {}

    def of(self, workload: Workload, policy: Policy, seed: int) -> str:
        """The fingerprint of one experiment.

        The arrivals themselves are hashed, so it does not matter which file they came from. Of
        plugins of other distributions, the version counts.
        """
        named = (workload.name, seed)
        if named not in self._of_arrivals:
            self._of_arrivals[named] = _arrivals_fingerprint(workload, seed)
        return fingerprint_of(self._of_arrivals[named], policy, seed, plugin_versions())


def _arrivals_fingerprint(workload: Workload, seed: int) -> str:
    timeline = workload.timeline(seed)
    happenings = [[type(each).__name__, each] for each in timeline.happenings]
    names = (timeline.ends_at_s, timeline.expected_s, timeline.scheduler_names)
    return fingerprint_of(timeline.objects().by_kind, happenings, names)


def plugin_versions() -> dict[str, str]:
    """Plugin of another distribution -> the version of that."""
    return {
        point.name: point.dist.version if point.dist is not None else ""
        for point in entry_points(group=_PLUGINS)
    }
