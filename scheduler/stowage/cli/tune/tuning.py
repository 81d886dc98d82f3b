"""Searches, and measures what was found on the arrivals that were held back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from rich.console import Console

from stowage.analysis.simulation.result import ExperimentFailed, ExperimentResult
from stowage.analysis.tuning.objectives import Scores, mean_gain, pareto_front, scores_of
from stowage.analysis.tuning.search_space import search_space
from stowage.cli.tune.finding import Finding, gains
from stowage.cli.tune.task import PRESENT, TuningOptions, TuningTask, run_all
from stowage.experiments.experiment import fingerprint_of
from stowage.experiments.open_pool import open_pool
from stowage.experiments.pool import Pool
from stowage.experiments.progress import shown_progress
from stowage.experiments.search import BATCH, Search, SearchOptions, Trial


class Tuned(msgspec.Struct, frozen=True):
    """A search that has ended.

    Attributes:
        finding: The trial that was chosen, and its gains.
        base: The scores of the present configuration.
        trials: All trials.
        front: The trials that no other is better than.
        importances: Objective -> setting -> importance.
        held_back: Results on the held-back arrivals, of the present and the chosen configuration.
    """

    finding: Finding
    base: Scores
    trials: Sequence[Trial]
    front: Sequence[Trial]
    importances: Mapping[str, Mapping[str, float]]
    held_back: Sequence[ExperimentResult]


def tuned(task: TuningTask, options: TuningOptions, console: Console) -> Tuned:
    """Search, choose, and measure the chosen trial.

    Raises:
        ExperimentFailed: The present configuration, or every trial, is of no use.
        UnusableResults: The storage is of another search.
        ClusterVanished: The Dask cluster is gone; the storage has the trials that ended.
        OSError: The storage cannot be written.
    """
    with open_pool(options.pool, BATCH * task.data.num_traces * len(task.seeds)) as pool:
        present = task.run_present(pool)
        base = scores_of(options.objectives, present)
        search = _searched(task, options, base, pool, console)
        trials = search.trials()
        best, front = _best(trials, base)
        name = f"trial {best.number}"
        trained = run_all(pool, task.train(name, best.choices, task.seeds))
        policies = [task.policy(PRESENT), task.policy(name, best.choices)]
        held_back = task.run_held_back(pool, policies)
    finding = Finding(
        best,
        gains(options.objectives, [*present, *trained], name),
        gains(options.objectives, held_back, name),
    )
    return Tuned(finding, base, trials, front, search.importances(), held_back)


def _searched(
    task: TuningTask, options: TuningOptions, base: Scores, pool: Pool, console: Console
) -> Search:
    """The search after its last trial."""
    start = task.present_choices()
    plugins = [name.partition(".")[0] for name in start if name.endswith(".weight")]
    search = Search(
        SearchOptions(
            search_space(plugins, options.max_weight, task.data.extended_resources),
            options.objectives,
            task.seeds,
            options.num_trials,
            base.unplaced,
            options.storage,
            fingerprint_of(task.fingerprint(), options.objectives, options.max_weight),
            start,
        )
    )
    if search.num_ended:
        console.print(f"trials from {options.storage}: {search.num_ended}", soft_wrap=True)
    with shown_progress(console, options.num_trials, "trials", search.num_ended) as advance:
        search.run(task.train, pool, advance)
    return search


def _best(trials: Sequence[Trial], base: Scores) -> tuple[Trial, list[Trial]]:
    """The best compromise, and the whole front.

    Raises:
        ExperimentFailed: No trial is as good as the present configuration at placing pods.
    """
    scored = [(each, each.scores) for each in trials if each.scores is not None]
    places = pareto_front([scores for _, scores in scored], base.unplaced)
    if not places:
        reasons = [each.failure for each in trials if each.failure is not None]
        why = f"; the first failure: {reasons[0]}" if reasons else ""
        raise ExperimentFailed(f"no trial places as many pods as the present configuration{why}")
    best = max(places, key=lambda place: mean_gain(scored[place][1], base))
    return scored[best][0], [scored[place][0] for place in places]
