"""What a search minimises, and which trials are not worth finishing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import fmean, median

import msgspec

from stowage.analysis.simulation.result import ExperimentResult


class Objective(StrEnum):
    """What can become less."""

    PACKING = "packing"
    FRAGMENTATION = "fragmentation"
    BALANCE = "balance"
    WAITING = "waiting"
    PREEMPTIONS = "preemptions"


class OpenbObjective(StrEnum):
    """What can become less in the openb experiment."""

    ALLOCATION = "allocation"
    FRAGMENTATION = "fragmentation"


METRICS: Mapping[str, str] = {
    Objective.PACKING: "nodes_used",
    Objective.FRAGMENTATION: "fragmentation",
    Objective.BALANCE: "imbalance",
    Objective.WAITING: "wait_mean_s",
    Objective.PREEMPTIONS: "preempted",
    OpenbObjective.ALLOCATION: "unallocated_gpus_pct",
}
"""Objective -> the metric that is to be small."""

UNPLACED = "failed"
"""Metric of the pods that never got a node. An empty cluster is not a well packed one: a trial must
not leave more pods without a node than the present configuration does."""


class Scores(msgspec.Struct, frozen=True):
    """How good a configuration is.

    Attributes:
        values: The mean of each objective's metric over workloads and seeds; smaller is better.
        unplaced: Mean number of pods without a node.
    """

    values: tuple[float, ...]
    unplaced: float


def scores_of(objectives: Sequence[str], results: Sequence[ExperimentResult]) -> Scores:
    """The scores of a configuration from its results, at least one."""
    values = tuple(
        fmean(each.metrics[METRICS[objective]] for each in results) for objective in objectives
    )
    return Scores(values, fmean(each.metrics[UNPLACED] for each in results))


def gain(value: float, base: float) -> float:
    """The part of the base that was saved; negative if the value is larger.

    Examples:
        >>> gain(90, 100), gain(0, 0)
        (0.1, 0.0)
    """
    return (base - value) / base if base else (0.0 if not value else -math.inf)


def is_hopeless(scores: Scores, others: Sequence[Scores], least: int = 4) -> bool:
    """Whether a trial is worse in every objective than the median of other trials so far.

    Args:
        scores: Of the trial, on its first seed.
        others: Of finished trials, on their first seed.
        least: No trial is hopeless as long as fewer are finished.
    """
    if len(others) < least:
        return False
    medians = [median(each.values[index] for each in others) for index in range(len(scores.values))]
    return all(value > middle for value, middle in zip(scores.values, medians, strict=True))


def mean_gain(scores: Scores, base: Scores) -> float:
    """The mean over the objectives of what was saved."""
    return fmean(map(gain, scores.values, base.values))


def pareto_front(trials: Sequence[Scores], most_unplaced: float) -> list[int]:
    """Places of the trials that no other trial is at least as good as in every objective.

    Args:
        trials: The scores; of equal ones, the first counts.
        most_unplaced: Trials that leave more pods without a node do not count.
    """
    candidates = [index for index, each in enumerate(trials) if each.unplaced <= most_unplaced]
    return [
        index
        for index in candidates
        if not any(
            _is_better(trials[other].values, trials[index].values)
            or (other < index and trials[other].values == trials[index].values)
            for other in candidates
        )
    ]


def _is_better(one: Sequence[float], other: Sequence[float]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
