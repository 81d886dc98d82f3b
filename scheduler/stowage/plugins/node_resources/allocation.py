"""Columns of allocatable and requested amounts, for the resources that a strategy scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from stowage.api.objects.pod import Pod
from stowage.api.values.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    is_scalar_resource_name,
)
from stowage.api.values.resources import PodUsage, pod_usage
from stowage.framework.verdict import Int64Array
from stowage.plugins.node_resources.args import ResourceSpec
from stowage.state.devices.classes import DeviceClasses, is_dra_resource_name
from stowage.state.nodes.resource_index import CPU as CPU_COLUMN
from stowage.state.nodes.resource_index import MEMORY as MEMORY_COLUMN
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.pods.pod_class import PodClass
from stowage.state.snapshot import NodeView

_NO_COLUMN = -1
_CPU_AND_MEMORY = slice(CPU_COLUMN, MEMORY_COLUMN + 1)


class ScoredColumns(msgspec.Struct, frozen=True):
    """Columns of the scored resources.

    Attributes:
        allocatable: ``int64[nodes, resources]``; 0 means "do not count this resource".
        taken: ``int64[nodes, resources]``, requests of the pods on each node.
        requests: ``int64[resources]``, of the pod being scheduled.
        weights: ``int64[resources]``.
    """

    allocatable: Int64Array
    taken: Int64Array
    requests: Int64Array
    weights: Int64Array

    @property
    def requested(self) -> Int64Array:
        """``int64[nodes, resources]``, the pod included."""
        return self.taken + self.requests

    @property
    def cases(self) -> Int64Array:
        """``int64[2, nodes, resources]``: with the pod, and without it."""
        both = np.zeros((2, 1, len(self.requests)), dtype=np.int64)
        both[0] = self.requests
        return self.taken + both


class _Wanted(msgspec.Struct, frozen=True):
    """The columns that count for a class of pods, and what its pods request of each.

    Attributes:
        version: The versions of resources and device classes for which this is right.
        columns: The columns; -1 for a resource that no node has itself.
        requests: ``int64[resources]``.
        weights: ``int64[resources]``.
        served: (position, device class) of resources that DRA serves where nodes lack them.
    """

    version: tuple[int, int]
    columns: slice | Int64Array
    requests: Int64Array
    weights: Int64Array
    served: tuple[tuple[int, str], ...] = ()


class ScoredResources:
    """Picks the columns of the scored resources for a pod, and scores nodes by them.

    Extended and other scalar resources count only if the pod requests them. Resources that no node
    has do not count. (``calculateResourceAllocatableRequest``) Where a node lacks a resource that a
    device class serves, the devices of the class count.

    Args:
        resources: The scored resources.
        request_of: Returns what a pod of a class requests of a resource.
        formula: Returns ``int64[nodes]`` from the columns, each node by itself.
        with_defaults: Whether containers of placed pods that request no cpu or memory count with
            default amounts.
    """

    def __init__(
        self,
        resources: Sequence[ResourceSpec],
        request_of: Callable[[PodClass, str], int],
        formula: Callable[[ScoredColumns], Int64Array],
        *,
        with_defaults: bool,
    ) -> None:
        self._resources = resources
        self._request_of = request_of
        self._formula = formula
        self._with_defaults = with_defaults
        self._wanted: WeakKeyDictionary[PodClass, _Wanted] = WeakKeyDictionary()

    @property
    def may_count_devices(self) -> bool:
        """Whether devices may count: then amounts of nodes do not tell everything."""
        return any(is_dra_resource_name(each.name) for each in self._resources)

    def requests_any(self, pod_class: PodClass) -> bool:
        """Whether a pod of the class requests any of the resources."""
        return any(self._request_of(pod_class, each.name) for each in self._resources)

    def scores(self, nodes: NodeView, pod_class: PodClass) -> Int64Array:
        """``int64[nodes]`` for a pod of the class, by the formula."""
        index, classes = nodes.snapshot.resources, nodes.snapshot.devices.classes
        wanted = self._wanted.get(pod_class)
        if wanted is None or wanted.version != (index.version, classes.version):
            wanted = self._want(index, classes, pod_class)
            self._wanted[pod_class] = wanted
        allocatable = nodes.allocatable[:, wanted.columns]
        taken = self._taken(nodes, wanted.columns)
        if wanted.served:
            allocatable, taken = _with_devices(nodes, wanted, allocatable, taken)
        return self._formula(ScoredColumns(allocatable, taken, wanted.requests, wanted.weights))

    def _taken(self, nodes: NodeView, columns: slice | Int64Array) -> Int64Array:
        if not self._with_defaults:
            return nodes.requested[:, columns]
        if isinstance(columns, slice):
            return nodes.nonzero_requested
        taken = nodes.requested[:, columns]
        for column in (CPU_COLUMN, MEMORY_COLUMN):
            at = np.flatnonzero(columns == column)
            taken[:, at] = nodes.nonzero_requested[:, [column]]
        return taken

    def _want(self, index: ResourceIndex, classes: DeviceClasses, pod_class: PodClass) -> _Wanted:
        columns: list[int] = []
        requests: list[int] = []
        weights: list[int] = []
        served: list[tuple[int, str]] = []
        for resource in self._resources:
            request = self._request_of(pod_class, resource.name)
            column = index.index_of(resource.name)
            serving = classes.serving(resource.name)
            if (column is not None or serving is not None) and counts(resource.name, request):
                if serving is not None:
                    served.append((len(columns), serving.metadata.name))
                columns.append(_NO_COLUMN if column is None else column)
                requests.append(request)
                weights.append(resource.effective_weight)
        both = columns == [CPU_COLUMN, MEMORY_COLUMN]
        return _Wanted(
            (index.version, classes.version),
            _CPU_AND_MEMORY if both else np.array(columns, dtype=np.int64),
            np.array(requests, dtype=np.int64),
            np.array(weights, dtype=np.int64),
            tuple(served),
        )


def _with_devices(
    nodes: NodeView, wanted: _Wanted, allocatable: Int64Array, taken: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """The columns with devices where nodes lack a resource that a class serves."""
    allocatable, taken = allocatable.copy(), taken.copy()
    missing = np.asarray(wanted.columns) == _NO_COLUMN
    allocatable[:, missing] = taken[:, missing] = 0
    for position, name in wanted.served:
        devices = nodes.snapshot.devices.of_class(name)
        lacks = allocatable[:, position] == 0
        allocatable[lacks, position] = nodes.take(devices.total)[lacks]
        taken[lacks, position] = nodes.take(devices.used)[lacks]
    return allocatable, taken


def container_usage(pod_class: PodClass) -> PodUsage:
    """The requests of a pod's containers, without pod-level requests.

    The scoring strategies of NodeResourcesFit do not read pod-level requests: upstream enables
    that feature for BalancedAllocation's scorer only.
    """
    spec = pod_class.spec
    if spec.resources is None:
        return PodUsage(
            pod_class.requests, pod_class.nonzero_cpu_milli, pod_class.nonzero_memory_bytes
        )
    return pod_usage(Pod(spec=msgspec.structs.replace(spec, resources=None)))


def request_with_defaults(pod_class: PodClass, resource: str) -> int:
    """The requests of a pod's containers; a container without one counts 100m cpu or 200Mi."""
    usage = container_usage(pod_class)
    if resource == CPU:
        return usage.nonzero_cpu_milli
    if resource == MEMORY:
        return usage.nonzero_memory_bytes
    return usage.requests.get(resource, 0)


def plain_request(pod_class: PodClass, resource: str) -> int:
    """The pod's request: cpu in milli, other resources in whole units."""
    return pod_class.requests.get(resource, 0)


def counts(resource: str, request: int) -> bool:
    """Whether a resource is scored for pods that request so much of it."""
    if resource in (CPU, MEMORY, EPHEMERAL_STORAGE):
        return True
    return request > 0 and is_scalar_resource_name(resource)
