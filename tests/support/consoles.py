"""Clusters as the console sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.attempt_decisions import decision_of
from stowage.api.config.loading import load_configuration
from stowage.api.decisions import Decision
from stowage.api.objects.meta import ApiStruct
from stowage.cli.profiles import make_frameworks
from stowage.console.answers.answer import rfc3339
from stowage.console.clusters.live import LiveCluster
from stowage.console.clusters.moment import Moment
from stowage.console.clusters.source import SourceName
from stowage.console.decisions.history import OBSERVED, DecisionHistory
from stowage.framework import Framework
from tests.support.decisions import attempt
from tests.support.engines import DEFAULT_PROFILE, configuration_of

START_S = 1_767_225_600.0
"""2026-01-01T00:00:00Z, when the pods of the builders were created."""


class Clock:
    """A clock that a test advances."""

    def __init__(self, now: float = START_S) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def default_frameworks() -> Sequence[Framework]:
    """The default profile, with the name default-scheduler."""
    return make_frameworks(load_configuration(configuration_of(DEFAULT_PROFILE)))


def live_cluster(
    *objects: ApiStruct,
    clock: Callable[[], float] = lambda: START_S,
    max_decisions: int = 10_000,
) -> LiveCluster:
    """A loaded cluster with these objects."""
    known = ClusterObjects()
    for obj in objects:
        known.add(obj)
    history = DecisionHistory(OBSERVED, max_decisions=max_decisions)
    name = SourceName("cluster", "test", "--context test")
    cluster = LiveCluster(name, default_frameworks(), history, clock, is_live=True)
    cluster.load(known)
    return cluster


def moment_of(*objects: ApiStruct) -> Moment:
    """These objects an hour after the creation of the pods."""
    return live_cluster(*objects).moment(START_S + 3600)


def decision(number: int = 1, seconds: float = 0.0, **changes: Any) -> Decision:
    """The record of a successful attempt, some seconds after `START_S`."""
    result = attempt(number, **changes)
    return decision_of(result, f"d-{number}", rfc3339(START_S + seconds))
