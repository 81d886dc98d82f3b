"""What happens to a cluster from outside, in order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.events import ConfigurationChanged, Event
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod


class PodArrives(msgspec.Struct, frozen=True):
    """A pod is created.

    Attributes:
        at_s: When.
        pod: The pod; one whose spec names a node takes room there, and is not counted.
        duration_s: How long it runs once it is bound; None if it does not end by itself.
    """

    at_s: float
    pod: Pod
    duration_s: float | None = None


class PodLeaves(msgspec.Struct, frozen=True):
    """A pod is deleted, wherever it is; ``namespace/name``."""

    at_s: float
    key: str


class NodeJoins(msgspec.Struct, frozen=True):
    """A node is added, or changed."""

    at_s: float
    node: Node


class NodeLeaves(msgspec.Struct, frozen=True):
    """A node is removed or fails: its pods are deleted, and their controllers make them again."""

    at_s: float
    name: str


class PolicyChanges(msgspec.Struct, frozen=True):
    """The scheduler gets another configuration, as from its ConfigMap."""

    at_s: float
    event: ConfigurationChanged


class OutsideEvent(msgspec.Struct, frozen=True):
    """Something else happens; `Timeline.adapter` makes events for the engine of it."""

    at_s: float
    event: Event


Adapt: TypeAlias = Callable[[OutsideEvent], Sequence[Event]]
"""Changes the objects of a simulation, and returns the events to show to its engine."""

Happening: TypeAlias = PodArrives | PodLeaves | NodeJoins | NodeLeaves | OutsideEvent


class Timeline(msgspec.Struct, frozen=True):
    """The course of one workload with one seed.

    Attributes:
        objects: Makes the objects at the start; each call makes them anew.
        happenings: Ascending in time; may be read once.
        ends_at_s: When the experiment ends; None if it ends when nothing more can happen.
        expected_s: About how long it takes; sets the distance of samples.
        scheduler_names: Those of the pods.
        adapter: Makes the function for the outside events of one simulation from its objects.
    """

    objects: Callable[[], ClusterObjects]
    happenings: Iterable[Happening]
    ends_at_s: float | None
    expected_s: float
    scheduler_names: tuple[str, ...] = ()
    adapter: Callable[[ClusterObjects], Adapt] = lambda _objects: _ignored


def _ignored(_event: OutsideEvent) -> Sequence[Event]:
    return ()


class Workload(Protocol):
    """Nodes and pods over time."""

    @property
    def name(self) -> str:
        """The name of the trace in results."""
        ...

    def timeline(self, seed: int) -> Timeline:
        """The course with a seed; the same in every process."""
        ...
