"""The experiments of a search, on two parts of the arrivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stowage.analysis.simulation.result import ExperimentFailed, ExperimentResult
from stowage.analysis.simulation.timeline import Workload
from stowage.analysis.tuning.arrival_parts import FirstArrivals, LaterArrivals
from stowage.analysis.tuning.search_space import FIT, Choice, configuration_with
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import load_configuration
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_frameworks
from stowage.cli.simulate.policies import ConfiguredPolicy
from stowage.experiments.experiment import Experiment
from stowage.experiments.pool import Pool
from stowage.experiments.workload_experiment import Fingerprints, WorkloadExperiment
from stowage.framework import Handle
from stowage.framework.profile.profile import ExtensionPoint

PRESENT = "present"
_LEAST_HELD_BACK_SEEDS = 5


class TuningTask(msgspec.Struct, frozen=True):
    """What is tuned, and on which data.

    Attributes:
        written: The present configuration, as mappings and lists.
        workloads: The workloads, whole.
        held_back: The share of each workload's time that the search does not see.
        seeds: Of the search. The held-back part is run with others, at least five.
        feature_gates: Values of ``--feature-gates``.
    """

    written: dict[str, Any]
    workloads: Sequence[Workload]
    held_back: float
    seeds: Sequence[int]
    feature_gates: tuple[str, ...] = ()

    @property
    def held_back_seeds(self) -> list[int]:
        """Seeds that the search does not use."""
        begin = max(self.seeds) + 1
        return list(range(begin, begin + max(_LEAST_HELD_BACK_SEEDS, len(self.seeds))))

    def policy(self, name: str, choices: Mapping[str, Choice] | None = None) -> ConfiguredPolicy:
        """The present configuration, or the one with other settings.

        Raises:
            InvalidConfiguration: It is invalid.
        """
        document = self.written if choices is None else configuration_with(self.written, choices)
        return ConfiguredPolicy(
            name, load_configuration(document), feature_gates=self.feature_gates
        )

    def present_choices(self) -> dict[str, Choice]:
        """The present settings; of arguments, those that can be told.

        Raises:
            InvalidConfiguration: The present configuration is invalid.
        """
        registry = discover_plugins(Handle(), gates=parse_feature_gates(self.feature_gates))
        configuration = load_configuration(self.written)
        profile = make_frameworks(configuration, registry)[0].profile
        choices: dict[str, Choice] = {
            f"{plugin.name}.weight": profile.weights[plugin.name]
            for plugin in profile.plugins[ExtensionPoint.SCORE]
        }
        given = {each.name: each.args for each in configuration.profiles[0].plugin_config}
        strategy = given.get(FIT, {}).get("scoringStrategy") or {}
        weights = {
            each["name"]: each.get("weight") or 1 for each in strategy.get("resources") or ()
        } or {"cpu": 1, "memory": 1}
        choices[f"{FIT}.type"] = strategy.get("type") or "LeastAllocated"
        if weights.keys() == {"cpu", "memory"}:
            choices |= {f"{FIT}.{name}": weight for name, weight in weights.items()}
        return choices

    def train(
        self, name: str, choices: Mapping[str, Choice], seeds: Sequence[int]
    ) -> list[Experiment]:
        """The experiments of a trial on the first part of the arrivals."""
        return self._experiments(self.policy(name, choices), seeds, FirstArrivals)

    def run_present(self, pool: Pool) -> list[ExperimentResult]:
        """Results of the present configuration on the first part.

        Raises:
            ExperimentFailed: An experiment failed.
        """
        return run_all(pool, self._experiments(self.policy(PRESENT), self.seeds, FirstArrivals))

    def run_held_back(
        self, pool: Pool, policies: Sequence[ConfiguredPolicy]
    ) -> list[ExperimentResult]:
        """Results of policies on the held-back part.

        Raises:
            ExperimentFailed: An experiment failed.
        """
        seeds = self.held_back_seeds
        made = [self._experiments(each, seeds, LaterArrivals) for each in policies]
        return run_all(pool, [experiment for each in made for experiment in each])

    def fingerprint(self) -> str:
        """A hash of what the scores of a trial depend on."""
        fingerprints, policy = Fingerprints(), self.policy(PRESENT)
        return "".join(
            fingerprints.of(each, policy, seed) for each in self.workloads for seed in self.seeds
        )

    def _experiments(
        self,
        policy: ConfiguredPolicy,
        seeds: Sequence[int],
        part: type[FirstArrivals] | type[LaterArrivals],
    ) -> list[Experiment]:
        return [
            WorkloadExperiment(part(workload, 1 - self.held_back), policy, seed)
            for workload in self.workloads
            for seed in seeds
        ]


def run_all(pool: Pool, experiments: Sequence[Experiment]) -> list[ExperimentResult]:
    """The results of experiments, in their order.

    Raises:
        ExperimentFailed: An experiment failed.
    """
    results = {}
    for outcome in pool.run(experiments):
        if outcome.result is None:
            raise ExperimentFailed(f"{outcome.key}: {outcome.failure}")
        results[outcome.key] = outcome.result
    return [results[each.key] for each in experiments]
