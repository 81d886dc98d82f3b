"""Searches settings with Optuna: asks for trials, runs their experiments, tells the scores.

Trials are asked for in batches of fixed size, each with a sampler seeded by its place, and told in
order: so the search does not depend on the number of workers. With a storage file an interrupted
search goes on after its last whole batch, with the settings it had asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import TrialState

from stowage.analysis.simulation.result import ExperimentResult
from stowage.analysis.tuning.objectives import Scores, is_hopeless, scores_of
from stowage.analysis.tuning.search_space import Choice, Setting
from stowage.experiments.experiment import Experiment, Outcome
from stowage.experiments.pool import Pool
from stowage.experiments.results_file import UnusableResults

BATCH = 8
_STUDY = "stowage tune"
#: How Optuna's journal begins: with the creation of a study.
_JOURNAL_START = b'{"op_code":0,'
_INPUTS = "inputs"
_FIRST, _UNPLACED, _FAILURE = "first seed", "unplaced", "failure"
_STARTUP_TRIALS = 10

MakeExperiments = Callable[[str, Mapping[str, Choice], Sequence[int]], Sequence[Experiment]]
"""Makes the experiments of a trial from its name, its settings and the seeds. The name is that of
the policy in the results."""


class SearchOptions(msgspec.Struct, frozen=True):
    """What is searched.

    Attributes:
        space: The settings.
        objectives: Names of `METRICS`.
        seeds: Of the experiments of one trial. A trial that is hopeless after the first is pruned.
        num_trials: How many trials.
        most_unplaced: A trial must not leave more pods without a node.
        storage: Keeps the trials; None keeps them in memory.
        inputs: Fingerprint of everything else that the scores depend on.
        start: Settings of the first trial, if they are in the space.
    """

    space: Sequence[Setting]
    objectives: Sequence[str]
    seeds: Sequence[int]
    num_trials: int
    most_unplaced: float
    storage: Path | None = None
    inputs: str = ""
    start: Mapping[str, Choice] = {}


class Trial(msgspec.Struct, frozen=True):
    """One trial that has ended.

    Attributes:
        number: Its number.
        choices: Its settings.
        scores: Its scores; None if it was pruned or failed.
        failure: Why it failed.
    """

    number: int
    choices: dict[str, Choice]
    scores: Scores | None = None
    failure: str | None = None


class Search:
    """A search that can be continued.

    Args:
        options: What is searched.

    Raises:
        UnusableResults: The storage is of another search, or is not a storage.
        OSError: The storage cannot be opened.
    """

    def __init__(self, options: SearchOptions) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._options = options
        self._distributions = {each.name: _distribution(each) for each in options.space}
        self._study = _open_study(options)
        self._requeue_interrupted()

    @property
    def num_ended(self) -> int:
        """Number of trials that have ended."""
        return len(self._ended())

    def trials(self) -> list[Trial]:
        """The trials that have ended, in their order."""
        return [_trial(each) for each in self._ended()]

    def run(self, make: MakeExperiments, pool: Pool, on_trial: Callable[[Outcome], None]) -> None:
        """Run trials until their number is reached.

        Args:
            make: Makes the experiments of a trial.
            pool: Runs them.
            on_trial: Is told of each trial how it ended, by its name and without a result.
        """
        if not self._study.trials and self._is_in_space(self._options.start):
            self._study.enqueue_trial(dict(self._options.start))
        while (ended := self.num_ended) < self._options.num_trials:
            size = min(BATCH - ended % BATCH, self._options.num_trials - ended)
            outcomes = self._run_batch(
                [self._ask(ended + index) for index in range(size)], make, pool
            )
            for outcome in outcomes:
                on_trial(outcome)

    def importances(self) -> dict[str, dict[str, float]]:
        """Objective -> setting -> its share in what tells the best tenth of the trials from others.

        Empty as long as there are too few trials to say.
        """
        complete = [each for each in self._ended() if each.state == TrialState.COMPLETE]
        if len(complete) < 2 * BATCH:
            return {}
        found = {}
        for index, objective in enumerate(self._options.objectives):
            if len({each.values[index] for each in complete}) > 1:
                found[objective] = self._importances_for(index)
        return found

    def _importances_for(self, index: int) -> dict[str, float]:
        with warnings.catch_warnings():
            # It says that small values are good ones: so they are here.
            warnings.filterwarnings("ignore", message="PedAnova", category=UserWarning)
            return get_param_importances(
                self._study,
                evaluator=PedAnovaImportanceEvaluator(),
                target=lambda trial: trial.values[index],
            )

    def _ended(self) -> list[optuna.trial.FrozenTrial]:
        """The trials that have ended, without those that were interrupted."""
        return [
            each
            for each in self._study.get_trials(deepcopy=False)
            if each.state in (TrialState.COMPLETE, TrialState.PRUNED)
            or (each.state == TrialState.FAIL and _FAILURE in each.user_attrs)
        ]

    def _requeue_interrupted(self) -> None:
        for each in self._study.get_trials(states=(TrialState.RUNNING,)):
            self._study.tell(each.number, state=TrialState.FAIL)
            self._study.enqueue_trial(each.params)

    def _is_in_space(self, choices: Mapping[str, Choice]) -> bool:
        return all(choices.get(each.name) in each.values for each in self._options.space)

    def _ask(self, place: int) -> optuna.Trial:
        self._study.sampler = optuna.samplers.TPESampler(
            seed=place, multivariate=True, n_startup_trials=_STARTUP_TRIALS
        )
        return self._study.ask(self._distributions)

    def _run_batch(
        self, batch: Sequence[optuna.Trial], make: MakeExperiments, pool: Pool
    ) -> list[Outcome]:
        """Run the first seed of all trials, then the other seeds of those that are promising."""
        first, *others = self._options.seeds
        by_name = {f"trial {each.number}": each for each in batch}
        results, failures = _run(pool, make, by_name, [first])
        succeeded = {name: found for name, found in results.items() if name not in failures}
        promising = self._promising(by_name, succeeded)
        more, later_failures = _run(pool, make, promising, others)
        failures |= later_failures
        for name, trial in by_name.items():
            if name in failures:
                trial.set_user_attr(_FAILURE, failures[name])
                self._study.tell(trial, state=TrialState.FAIL)
            elif name not in promising:
                self._study.tell(trial, state=TrialState.PRUNED)
            else:
                self._tell(trial, [*results[name], *more.get(name, ())])
        return [Outcome(name, "", failure=failures.get(name)) for name in by_name]

    def _promising(
        self,
        trials: Mapping[str, optuna.Trial],
        results: Mapping[str, Sequence[ExperimentResult]],
    ) -> dict[str, optuna.Trial]:
        """The trials that are not hopeless by their results of the first seed, which are noted."""
        known = [
            Scores(*each.user_attrs[_FIRST])
            for each in self._ended()
            if each.state == TrialState.COMPLETE
        ]
        promising = {}
        for name, trial in trials.items():
            if name not in results:
                continue
            scores = scores_of(self._options.objectives, results[name])
            trial.set_user_attr(_FIRST, (scores.values, scores.unplaced))
            if not is_hopeless(scores, known):
                promising[name] = trial
        return promising

    def _tell(self, trial: optuna.Trial, results: Sequence[ExperimentResult]) -> None:
        scores = scores_of(self._options.objectives, results)
        trial.set_user_attr(_UNPLACED, scores.unplaced)
        trial.set_constraint(_UNPLACED, scores.unplaced - self._options.most_unplaced)
        self._study.tell(trial, list(scores.values))


def _run(
    pool: Pool, make: MakeExperiments, trials: Mapping[str, optuna.Trial], seeds: Sequence[int]
) -> tuple[dict[str, list[ExperimentResult]], dict[str, str]]:
    """Run experiments of trials; returns results and failures by the name of the trial.

    The results of a trial are in the order of its experiments.
    """
    made = {
        each.key: (name, each)
        for name, trial in trials.items()
        for each in make(name, trial.params, seeds)
    }
    found: dict[str, ExperimentResult] = {}
    failures: dict[str, str] = {}
    for outcome in pool.run(experiment for _, experiment in made.values()):
        if outcome.result is not None:
            found[outcome.key] = outcome.result
        else:
            failures[made[outcome.key][0]] = outcome.failure or ""
    results: dict[str, list[ExperimentResult]] = {}
    for key, (name, _) in made.items():
        if key in found:
            results.setdefault(name, []).append(found[key])
    return results, failures


def _distribution(setting: Setting) -> BaseDistribution:
    numbers = [each for each in setting.values if isinstance(each, int)]
    if len(numbers) == len(setting.values):
        return IntDistribution(min(numbers), max(numbers))
    return CategoricalDistribution(setting.values)


def _open_study(options: SearchOptions) -> optuna.Study:
    directions = [StudyDirection.MINIMIZE] * len(options.objectives)
    path = options.storage
    if path is not None:
        _check_is_storage(path)
    try:
        storage = None if path is None else JournalStorage(JournalFileBackend(str(path)))
        study = optuna.create_study(
            storage=storage, study_name=_STUDY, directions=directions, load_if_exists=True
        )
    except (ValueError, KeyError) as error:
        raise _not_a_storage(path) from error
    known = study.user_attrs.get(_INPUTS)
    if known is None:
        study.set_user_attr(_INPUTS, options.inputs)
    elif known != options.inputs:
        raise UnusableResults(
            f"{options.storage}: it is of a search with other inputs or flags; name another file"
        )
    return study


def _check_is_storage(path: Path) -> None:
    """Refuse a file of something else before Optuna appends to it."""
    try:
        with path.open("rb") as file:
            first = file.readline()
    except FileNotFoundError:
        return
    if first and not (first.endswith(b"\n") and first.startswith(_JOURNAL_START)):
        raise _not_a_storage(path)


def _not_a_storage(path: Path | None) -> UnusableResults:
    return UnusableResults(f"{path}: expected a storage of stowage tune")


def _trial(frozen: optuna.trial.FrozenTrial) -> Trial:
    scores = None
    if frozen.state == TrialState.COMPLETE:
        scores = Scores(tuple(frozen.values), frozen.user_attrs[_UNPLACED])
    return Trial(frozen.number, frozen.params, scores, frozen.user_attrs.get(_FAILURE))
