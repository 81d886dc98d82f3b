"""What happens to a cluster from outside, in order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

import msgspec

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.events import Event
from stowage.api.objects.meta import ApiStruct
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod


class PodArrives(msgspec.Struct, frozen=True):
    """A pod is created.

    Attributes:
        at_s: When.
        pod: The pod; it is pending unless its spec names a node.
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


class ObjectSeen(msgspec.Struct, frozen=True):
    """Another object is added, or changed."""

    at_s: float
    object: ApiStruct
    event: Event


Happening: TypeAlias = PodArrives | PodLeaves | NodeJoins | NodeLeaves | ObjectSeen


class Timeline(msgspec.Struct, frozen=True):
    """The course of one workload with one seed.

    Attributes:
        objects: Makes the objects at the start; each call makes them anew.
        happenings: Ascending in time; may be read once.
        ends_at_s: When the experiment ends; None if it ends when nothing more can happen.
        expected_s: About how long it takes; sets the distance of samples.
        scheduler_names: Those of the pods.
    """

    objects: Callable[[], ClusterObjects]
    happenings: Iterable[Happening]
    ends_at_s: float | None
    expected_s: float
    scheduler_names: tuple[str, ...] = ()


class Workload(Protocol):
    """Nodes and pods over time."""

    @property
    def name(self) -> str:
        """The name of the trace in results."""
        ...

    def timeline(self, seed: int) -> Timeline:
        """The course with a seed; the same in every process."""
        ...
