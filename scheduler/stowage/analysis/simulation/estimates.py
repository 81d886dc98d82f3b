"""Means over seeds with confidence intervals, and differences between policies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from stowage.analysis.simulation.result import ExperimentResult

_LEVEL = 0.95
_STEPS = 80


def significant(value: float, digits: int, sign: str = "") -> str:
    """A number with so many significant digits, and never with an exponent above zero.

    Examples:
        >>> significant(0.123456, 3), significant(1514.6, 3), significant(-240.4, 2, "+")
        ('0.123', '1,510', '-240')
    """
    text = f"{value:{sign}.{digits}g}"
    return f"{float(text):{sign},.0f}" if "e+" in text else text


class Estimate(msgspec.Struct, frozen=True, rename="camel"):
    """A mean over seeds.

    Attributes:
        mean: The mean.
        margin: The 95 % confidence interval is ``mean - margin`` to ``mean + margin``; None for
            one seed.
    """

    mean: float
    margin: float | None

    @property
    def is_zero_excluded(self) -> bool:
        """Whether the interval does not contain 0."""
        return self.margin is not None and abs(self.mean) > self.margin


class PolicySummary(msgspec.Struct, frozen=True, rename="camel"):
    """What one policy made of one trace.

    Attributes:
        trace: The trace.
        policy: The policy.
        seeds: The seeds of its experiments.
        metrics: Metric -> estimate.
        differences: Metric -> this policy less the first one, seed by seed; empty for the first.
        failed: Reason -> mean number of pods that never got a node.
    """

    trace: str
    policy: str
    seeds: tuple[int, ...]
    metrics: dict[str, Estimate]
    differences: dict[str, Estimate]
    failed: dict[str, float]


def summarise(results: Sequence[ExperimentResult]) -> list[PolicySummary]:
    """One summary a trace and policy, in the order of the results."""
    groups: dict[tuple[str, str], list[ExperimentResult]] = {}
    for result in results:
        groups.setdefault((result.trace, result.policy), []).append(result)
    first: dict[str, list[ExperimentResult]] = {}
    summaries = []
    for (trace, policy), found in groups.items():
        base = first.setdefault(trace, found)
        summaries.append(
            PolicySummary(
                trace,
                policy,
                tuple(each.seed for each in found),
                _means([each.metrics for each in found]),
                {} if base is found else _means(_paired(found, base)),
                _mean_counts([each.failed for each in found]),
            )
        )
    return summaries


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of independent values, with Student's confidence interval.

    Examples:
        Three values with standard deviation 1: the 97.5 % quantile with 2 degrees of freedom is
        4.303, divided by the square root of 3.

        >>> round(estimate([1, 2, 3]).margin, 3)
        2.484
    """
    num = len(values)
    mean = math.fsum(values) / num
    if num < 2:
        return Estimate(mean, None)
    variance = math.fsum((each - mean) ** 2 for each in values) / (num - 1)
    return Estimate(mean, student_quantile(num - 1) * math.sqrt(variance / num))


def student_quantile(degrees: int) -> float:
    """The quantile of Student's t distribution that bounds a two-sided 95 % interval.

    Bisection of the distribution function, a finite sum for whole degrees of freedom (Abramowitz
    and Stegun, 26.7.3 and 26.7.4).

    Args:
        degrees: Degrees of freedom, 1 or more.

    Examples:
        >>> [round(student_quantile(each), 3) for each in (1, 2, 9, 30)]
        [12.706, 4.303, 2.262, 2.042]
    """
    low, high = 0.0, 20.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _inside(middle, degrees) < _LEVEL:
            low = middle
        else:
            high = middle
    return high


def _inside(bound: float, degrees: int) -> float:
    """The probability of a value between ``-bound`` and ``bound``."""
    angle = math.atan(bound / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    is_odd = degrees % 2 == 1
    term, total = (cosine, 0.0) if is_odd else (1.0, 0.0)
    for power in range(1 if is_odd else 0, degrees - 1, 2):
        total += term
        term *= cosine**2 * (power + 1) / (power + 2)
    return 2 / math.pi * (angle + sine * total) if is_odd else sine * total


def _means(values: Sequence[Mapping[str, float]]) -> dict[str, Estimate]:
    """Estimates of the metrics that all have, in the order of the first."""
    if not values:
        return {}
    names = [name for name in values[0] if all(name in each for each in values)]
    return {name: estimate([each[name] for each in values]) for name in names}


def _paired(
    results: Sequence[ExperimentResult], base: Sequence[ExperimentResult]
) -> list[dict[str, float]]:
    """Metric by metric the difference to the result with the same seed."""
    by_seed = {each.seed: each.metrics for each in base}
    return [
        {
            name: value - by_seed[each.seed][name]
            for name, value in each.metrics.items()
            if name in by_seed[each.seed]
        }
        for each in results
        if each.seed in by_seed
    ]


def _mean_counts(counts: Sequence[Mapping[str, int]]) -> dict[str, float]:
    reasons = sorted({reason for each in counts for reason in each})
    return {reason: sum(each.get(reason, 0) for each in counts) / len(counts) for reason in reasons}
