"""The result of one experiment."""

from __future__ import annotations

import msgspec


class ExperimentFailed(Exception):  # noqa: N818 - it names the finding
    """The policy cannot be judged on this workload; the message says why.

    It ends one experiment, not the others.
    """


class Series(msgspec.Struct, frozen=True):
    """One quantity over the course of an experiment.

    Attributes:
        name: The quantity.
        unit: Unit of `y`.
        x: Virtual seconds since the start, or percent of the arrived load; ascending.
        y: The values.
        x_unit: Unit of `x`.
    """

    name: str
    unit: str
    x: list[float]
    y: list[float]
    x_unit: str = "s"


class ExperimentResult(msgspec.Struct, frozen=True):
    """What one policy made of one trace with one seed.

    Attributes:
        trace: Name of the workload.
        policy: Name of the policy.
        seed: Seed of the arrivals and of ties.
        metrics: One number a metric.
        series: Quantities over time or load.
        failed: Reason -> number of pods that never got a node.
    """

    trace: str
    policy: str
    seed: int
    metrics: dict[str, float]
    series: list[Series]
    failed: dict[str, int]
