"""What is searched, and the experiments of a search on two parts of the arrivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from stowage.analysis.simulation.result import ExperimentFailed, ExperimentResult
from stowage.analysis.tuning.search_space import FIT, Choice, configuration_with
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import load_configuration
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_frameworks
from stowage.cli.simulate.policies import ConfiguredPolicy
from stowage.experiments.experiment import Experiment
from stowage.experiments.pool import Pool, PoolOptions
from stowage.framework import Handle
from stowage.framework.profile.points import ExtensionPoint

PRESENT = "present"
_LEAST_HELD_BACK_SEEDS = 5


class TuningOptions(msgspec.Struct, frozen=True):
    """How to search.

    Attributes:
        objectives: Names of `METRICS`.
        num_trials: How many configurations are tried.
        max_weight: The largest weight.
        storage: Keeps the trials.
        pool: Where experiments run.
    """

    objectives: Sequence[str]
    num_trials: int
    max_weight: int
    storage: Path | None
    pool: PoolOptions


class TuningData(Protocol):
    """Arrivals, in a part that is searched on and one that is held back."""

    @property
    def num_traces(self) -> int:
        """Workloads or traces; a policy has an experiment for each of them and each seed."""
        ...

    @property
    def parts(self) -> tuple[str, str]:
        """What the search sees, and what is held back, in words."""
        ...

    @property
    def extended_resources(self) -> Sequence[str]:
        """Resources beside cpu and memory that are worth looking at."""
        ...

    def first(self, policy: ConfiguredPolicy, seeds: Sequence[int]) -> list[Experiment]:
        """The experiments of a policy on the part that is searched on."""
        ...

    def held_back(self, policy: ConfiguredPolicy, seeds: Sequence[int]) -> list[Experiment]:
        """The experiments of a policy on the other part."""
        ...

    def fingerprint(self, policy: ConfiguredPolicy, seeds: Sequence[int]) -> str:
        """A hash of the arrivals, the policy, and plugins of other distributions."""
        ...


class TuningTask(msgspec.Struct, frozen=True):
    """What is tuned, and on which data.

    Attributes:
        written: The present configuration, as mappings and lists.
        data: The arrivals.
        seeds: Of the search. The held-back part is run with others, at least five.
        feature_gates: Values of ``--feature-gates``.
    """

    written: dict[str, Any]
    data: TuningData
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
        given_weights = {
            each["name"]: each.get("weight") or 1 for each in strategy.get("resources") or ()
        } or {"cpu": 1, "memory": 1}
        weights = dict.fromkeys(self.data.extended_resources, 0) | given_weights
        choices[f"{FIT}.type"] = strategy.get("type") or "LeastAllocated"
        if weights.keys() == {"cpu", "memory", *self.data.extended_resources}:
            choices |= {f"{FIT}.{name}": weight for name, weight in weights.items()}
        return choices

    def train(
        self, name: str, choices: Mapping[str, Choice], seeds: Sequence[int]
    ) -> list[Experiment]:
        """The experiments of a trial on the first part of the arrivals."""
        return self.data.first(self.policy(name, choices), seeds)

    def run_present(self, pool: Pool) -> list[ExperimentResult]:
        """Results of the present configuration on the first part.

        Raises:
            ExperimentFailed: An experiment failed.
        """
        return run_all(pool, self.data.first(self.policy(PRESENT), self.seeds))

    def run_held_back(
        self, pool: Pool, policies: Sequence[ConfiguredPolicy]
    ) -> list[ExperimentResult]:
        """Results of policies on the held-back part.

        Raises:
            ExperimentFailed: An experiment failed.
        """
        seeds = self.held_back_seeds
        made = [self.data.held_back(each, seeds) for each in policies]
        return run_all(pool, [experiment for each in made for experiment in each])

    def fingerprint(self) -> str:
        """A hash of what the scores of a trial depend on."""
        return self.data.fingerprint(self.policy(PRESENT), self.seeds)


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
