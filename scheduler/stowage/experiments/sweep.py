"""Runs experiments, keeps what is finished, and takes up again what was interrupted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

import msgspec

from stowage.analysis.simulation.result import ExperimentResult
from stowage.experiments.experiment import Experiment, Outcome
from stowage.experiments.open_pool import open_pool
from stowage.experiments.pool import ClusterVanished, PoolOptions
from stowage.experiments.results_file import ResultsFile


class SweepOptions(msgspec.Struct, frozen=True):
    """How a sweep runs.

    Attributes:
        pool: Where.
        results: Takes each result as it comes; results it has already are not computed again.
    """

    pool: PoolOptions = PoolOptions()
    results: Path | None = None


class Sweep(msgspec.Struct, frozen=True):
    """How a sweep ended.

    Attributes:
        outcomes: Of the experiments that ended, in the order in which experiments were given.
        num_kept: How many of them came from the results file.
        num_outdated: Results of the file that were of other inputs, and were computed again.
        num_missing: Experiments that were not run.
        ended_early: Why not; None if all were.
    """

    outcomes: Sequence[Outcome]
    num_kept: int = 0
    num_outdated: int = 0
    num_missing: int = 0
    ended_early: str | None = None

    @property
    def results(self) -> list[ExperimentResult]:
        """The results of the experiments that have one."""
        return [each.result for each in self.outcomes if each.result is not None]

    @property
    def failures(self) -> list[Outcome]:
        """The experiments that failed."""
        return [each for each in self.outcomes if each.failure is not None]


INTERRUPTED = "interrupted"
"""`Sweep.ended_early` after Ctrl-C."""


def run_sweep(
    experiments: Sequence[Experiment],
    options: SweepOptions,
    on_result: Callable[[Outcome], None] = lambda _outcome: None,
) -> Sweep:
    """Run all experiments; what has ended is kept whatever happens.

    The outcomes do not depend on the number of workers, nor on an interruption that was resumed.
    A full disk, Ctrl-C and a Dask scheduler that is gone end the sweep early.

    Args:
        experiments: With different keys.
        options: How.
        on_result: Is told of each outcome as it comes, those of the results file first.

    Raises:
        ValueError: Two experiments have the same key.
        UnusableResults: The results file is not one, or is in use.
        OSError: The results file cannot be opened.
        MissingExtra: Dask is needed and not installed.
    """
    _check_keys(experiments)
    with ResultsFile(options.results) if options.results else nullcontext() as file:
        known = file.outcomes if file is not None else {}
        kept = [known[each.key] for each in experiments if _is_kept(known, each)]
        ended = {each.key: each for each in kept}
        for each in kept:
            on_result(each)
        missing = [each for each in experiments if each.key not in ended]
        num_outdated = sum(
            each.key in known and known[each.key].fingerprint != each.fingerprint
            for each in missing
        )

        def take(outcome: Outcome) -> None:
            if file is not None:
                file.append(outcome)
            ended[outcome.key] = outcome
            on_result(outcome)

        ended_early = _run(missing, options.pool, take)
    return Sweep(
        [ended[each.key] for each in experiments if each.key in ended],
        len(kept),
        num_outdated,
        len(experiments) - len(ended),
        ended_early,
    )


def _check_keys(experiments: Iterable[Experiment]) -> None:
    repeated = [
        key for key, count in Counter(each.key for each in experiments).items() if count > 1
    ]
    if repeated:
        raise ValueError(f"two experiments are named {repeated[0]}")


def _is_kept(known: dict[str, Outcome], experiment: Experiment) -> bool:
    """Whether the result is there; failed experiments are tried again."""
    outcome = known.get(experiment.key)
    return (
        outcome is not None
        and outcome.result is not None
        and outcome.fingerprint == experiment.fingerprint
    )


def _run(
    experiments: Sequence[Experiment], where: PoolOptions, take: Callable[[Outcome], None]
) -> str | None:
    """Run experiments until their end; returns why they did not all end."""
    if not experiments:
        return None
    try:
        with open_pool(where, len(experiments)) as pool:
            for outcome in pool.run(experiments):
                take(outcome)
    except KeyboardInterrupt:
        return INTERRUPTED
    except ClusterVanished as vanished:
        return str(vanished)
    except OSError as error:
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return None
