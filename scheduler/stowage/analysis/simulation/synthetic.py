"""A workload from a ``Workload`` file, and from the objects of a cluster if there are any."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any, TypeVar

import numpy as np
from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.followed_objects import FollowedObjects
from stowage.analysis.simulation.gangs import group_template, named_group
from stowage.analysis.simulation.node_devices import slices_of
from stowage.analysis.simulation.pod_sizes import pod_specs
from stowage.analysis.simulation.random_streams import random_stream
from stowage.analysis.simulation.timeline import (
    Adapt,
    Happening,
    NodeJoins,
    NodeLeaves,
    OutsideEvent,
    PodArrives,
    Timeline,
)
from stowage.analysis.simulation.workload_spec import (
    Arrivals,
    NamedWorkload,
    NodeGroup,
    PodSource,
    WorkloadSpec,
)
from stowage.analysis.workload_pods import InvalidManifest, objects_of_manifests
from stowage.api.config.errors import ConfigError, InvalidConfiguration
from stowage.api.config.types import DEFAULT_SCHEDULER_NAME
from stowage.api.decoding.decode import convert_object
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import DeviceObjectGone, DeviceObjectSeen, Event, PodGroupSeen
from stowage.api.objects.device import ResourceSlice
from stowage.api.objects.meta import ObjectMeta, OwnerReference
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod, PodSchedulingGroup
from stowage.api.objects.pod_groups import PodGroup
from stowage.api.values.resources import node_allocatable, pod_requests

PartT = TypeVar("PartT")

_HOSTNAME = "kubernetes.io/hostname"
_ZONE = "topology.kubernetes.io/zone"
_BATCH = 1024


class SyntheticWorkload:
    """Nodes and pods of a workload file, on top of the objects of a cluster.

    Args:
        written: The workload file.
        cluster: The objects at the start, without those that `written` adds; stays as it is.

    Attributes:
        name: The name of the workload.

    Raises:
        InvalidConfiguration: A template cannot be used.
    """

    def __init__(self, written: NamedWorkload, cluster: ClusterObjects) -> None:
        self.name = written.name
        self._spec = written.spec
        self._cluster = cluster
        errors: list[ConfigError] = []
        self._nodes = [
            _node_template(group, path, errors)
            for path, group in _with_paths("spec.nodes", self._spec.nodes)
        ]
        self._pods = [
            _pod_template(source, cluster, path, errors)
            for path, source in _with_paths("spec.pods", self._spec.pods)
        ]
        self._groups = [
            group_template(source, cluster, path, errors)
            for path, source in _with_paths("spec.pods", self._spec.pods)
        ]
        if errors:
            raise InvalidConfiguration(errors)

    def timeline(self, seed: int) -> Timeline:
        """The course with a seed; the same in every process."""
        spec = self._spec
        groups = list(zip(spec.nodes, self._nodes, strict=True))
        sources = zip(spec.pods, self._pods, self._groups, strict=True)
        streams: list[Iterator[Happening]] = [
            _node_changes(group, node, spec, seed) for group, node in groups
        ]
        streams += [
            _arrivals(source, pod, spec, seed)
            if group is None
            else _group_arrivals(source, pod, group, spec, seed)
            for source, pod, group in sources
        ]
        pending = {pod.spec.scheduler_name for pod in self._cluster.pods()}
        names = pending | {pod.spec.scheduler_name for pod in self._pods}
        return Timeline(
            self._objects,
            heapq.merge(*streams, key=lambda each: each.at_s),
            None if spec.duration is None or spec.drain else float(spec.duration),
            _expected_s(spec),
            tuple(sorted(names)),
            _follow,
        )

    def _objects(self) -> ClusterObjects:
        objects = ClusterObjects({kind: dict(each) for kind, each in self._cluster.by_kind.items()})
        for group, node in zip(self._spec.nodes, self._nodes, strict=True):
            if not group.from_:
                for index in range(group.count):
                    made = _node(group, node, index)
                    for obj in (made, *slices_of(made, group.devices)):
                        objects.add(obj)
        return objects


def _follow(objects: ClusterObjects) -> Adapt:
    """Shows the engine what happens to groups and devices, and keeps the objects up to date."""
    followed = FollowedObjects(objects)

    def adapt(happening: OutsideEvent) -> Sequence[Event]:
        followed.follow(happening.event)
        return (happening.event,)

    return adapt


def _with_paths(field: str, parts: Sequence[PartT]) -> Iterator[tuple[str, PartT]]:
    return ((f"{field}[{index}]", part) for index, part in enumerate(parts))


def _end_of(until: float | None, spec: WorkloadSpec) -> float:
    return min(math.inf if each is None else float(each) for each in (until, spec.duration))


def _expected_s(spec: WorkloadSpec) -> float:
    if spec.duration is not None:
        return float(spec.duration)
    changes = [float(each) for group in spec.nodes for each in (group.from_, group.until or 0)]
    return max([*map(_expected_end, spec.pods), *changes], default=0.0)


def _expected_end(source: PodSource) -> float:
    """About when the last pod of a source ends."""
    arrivals, num_pods = source.arrivals, source.count or 0
    lasts = 0.0
    if arrivals is not None and arrivals.process == "bursts":
        lasts = num_pods / arrivals.size.mean * float(arrivals.every or 0)
    elif arrivals is not None:
        lasts = num_pods / arrivals.per_second
    end = source.from_ + lasts
    end = end if source.until is None else min(end, source.until)
    return end + (0.0 if source.lifetime is None else source.lifetime.mean)


# Nodes


def _node_template(group: NodeGroup, path: str, errors: list[ConfigError]) -> Node:
    template = group.template if isinstance(group.template, Mapping) else {}
    meta = template.get("metadata") or {}
    name = group.name or "node"
    try:
        item = {**template, "kind": "Node", "metadata": {**meta, "name": name}}
        node = convert_object(Node, item)
        if not node_allocatable(node):
            status = template.get("status")
            expected = "status.allocatable with quantities"
            errors.append(ConfigError(f"{path}.template", status, expected))
        _check_devices(node, group, path, errors)
    except (InvalidObject, TypeError) as invalid:
        errors.append(ConfigError(f"{path}.template", group.name, f"a Node; {invalid}"))
        return Node(ObjectMeta(name=name))
    return node


def _check_devices(node: Node, group: NodeGroup, path: str, errors: list[ConfigError]) -> None:
    for field, devices in _with_paths(f"{path}.devices", group.devices):
        try:
            slices_of(node, [devices])
        except InvalidObject as invalid:
            errors.append(ConfigError(field, devices.driver, f"devices; {invalid}"))


def _node(group: NodeGroup, template: Node, index: int) -> Node:
    name = f"{group.name}-{index}"
    labels = {**template.metadata.labels, _HOSTNAME: name}
    if group.zones:
        labels[_ZONE] = group.zones[index % len(group.zones)]
    return replace(
        template, metadata=replace(template.metadata, name=name, uid=name, labels=labels)
    )


def _node_changes(
    group: NodeGroup, template: Node, spec: WorkloadSpec, seed: int
) -> Iterator[Happening]:
    """The nodes join, fail, come back and leave, in order of time."""
    nodes = [_node(group, template, index) for index in range(group.count)]
    begin = float(group.from_)
    if begin > 0:
        for node in nodes:
            yield from _joins(begin, node, group)
    end = _end_of(group.until, spec)
    if group.failures is not None:
        yield from _failures(group, nodes, end, seed)
    if group.until is not None:
        for node in nodes:
            yield from _leaves(float(group.until), node, group)


def _joins(at_s: float, node: Node, group: NodeGroup) -> Iterator[Happening]:
    yield NodeJoins(at_s, node)
    for each in slices_of(node, group.devices):
        yield OutsideEvent(at_s, DeviceObjectSeen(each))


def _leaves(at_s: float, node: Node, group: NodeGroup) -> Iterator[Happening]:
    yield NodeLeaves(at_s, node.metadata.name)
    for each in slices_of(node, group.devices):
        gone = DeviceObjectGone(ResourceSlice.__name__, "", each.metadata.name)
        yield OutsideEvent(at_s, gone)


def _failures(
    group: NodeGroup, nodes: Sequence[Node], end: float, seed: int
) -> Iterator[Happening]:
    if group.failures is None:
        return
    after, repair = group.failures.after, group.failures.repair
    runs = after.numbers(random_stream(seed, "failures", group.name))
    repairs = repair.numbers(random_stream(seed, "repairs", group.name))
    changes = [(group.from_ + next(runs), index, False) for index in range(len(nodes))]
    heapq.heapify(changes)
    while changes and changes[0][0] < end:
        at_s, index, comes_back = heapq.heappop(changes)
        if comes_back:
            yield from _joins(at_s, nodes[index], group)
            heapq.heappush(changes, (at_s + next(runs), index, False))
        else:
            yield from _leaves(at_s, nodes[index], group)
            heapq.heappush(changes, (at_s + next(repairs), index, True))


# Pods


def _pod_template(
    source: PodSource, cluster: ClusterObjects, path: str, errors: list[ConfigError]
) -> Pod:
    """The pod of a source, with what admission adds."""
    template: dict[str, Any] = source.template if isinstance(source.template, dict) else {}
    meta, name = template.get("metadata") or {}, source.name or "pod"
    try:
        if not isinstance(template.get("spec"), dict):
            raise InvalidManifest("spec: expected an object")
        spec = {"schedulerName": DEFAULT_SCHEDULER_NAME, **(template.get("spec") or {})}
        item = {"kind": "Pod", "metadata": {**meta, "name": name}, "spec": spec}
        pod = objects_of_manifests([item], cluster).pods()[0]
        pod_requests(pod)
    except (InvalidManifest, InvalidObject, TypeError, AttributeError) as invalid:
        errors.append(ConfigError(f"{path}.template", source.name, f"a pod template; {invalid}"))
        return Pod()
    if source.requests and not pod.spec.containers:
        errors.append(ConfigError(f"{path}.template.spec.containers", None, "a container"))
    if not source.controller:
        return pod
    owner = OwnerReference(source.controller, name, f"{source.controller}/{name}", "batch/v1", True)
    return replace(pod, metadata=replace(pod.metadata, owner_references=(owner,)))


def _arrivals(source: PodSource, pod: Pod, spec: WorkloadSpec, seed: int) -> Iterator[Happening]:
    """The pods of one source, in order of time."""
    times = _times(source, seed)
    lifetimes = _lifetimes(source, seed)
    specs = pod_specs(source, pod, seed)
    end = _end_of(source.until, spec)
    meta = pod.metadata
    for index, at_s in enumerate(islice(times, source.count)):
        if at_s > end:
            return
        name = f"{source.name}-{index}"
        named = replace(meta, name=name, uid=f"{meta.namespace}/{name}")
        yield PodArrives(at_s, Pod(named, next(specs), pod.status), next(lifetimes))


def _group_arrivals(
    source: PodSource, pod: Pod, group: PodGroup, spec: WorkloadSpec, seed: int
) -> Iterator[Happening]:
    """The groups of one source with their pods, in order of time."""
    gangs = source.group
    if gangs is None:
        return
    lifetimes = _lifetimes(source, seed)
    sizes = gangs.size.numbers(random_stream(seed, "groups", source.name))
    specs = pod_specs(source, pod, seed)
    end = _end_of(source.until, spec)
    meta = pod.metadata
    for index, at_s in enumerate(islice(_times(source, seed), source.count)):
        if at_s > end:
            return
        size, lifetime = max(1, round(next(sizes))), next(lifetimes)
        name = f"{source.name}-{index}"
        yield OutsideEvent(at_s, PodGroupSeen(named_group(group, name, gangs, size)))
        for member in range(size):
            key = f"{name}-{member}"
            named = replace(meta, name=key, uid=f"{meta.namespace}/{key}")
            member_spec = replace(next(specs), scheduling_group=PodSchedulingGroup(name))
            yield PodArrives(at_s, Pod(named, member_spec, pod.status), lifetime)


def _lifetimes(source: PodSource, seed: int) -> Iterator[float | None]:
    """How long the pods run; None for those that do not end."""
    if source.lifetime is None:
        return repeat(None)
    drawn: Iterator[float] = source.lifetime.numbers(random_stream(seed, "lifetimes", source.name))
    return drawn


def _times(source: PodSource, seed: int) -> Iterator[float]:
    """Arrival times, without an end."""
    begin, arrivals = float(source.from_), source.arrivals
    if arrivals is None:
        yield from repeat(begin)
    elif arrivals.process == "constant":
        number = 0
        while True:
            yield begin + number / arrivals.per_second
            number += 1
    elif arrivals.process == "poisson":
        generator = random_stream(seed, "arrivals", source.name)
        while True:
            gaps = generator.exponential(1 / arrivals.per_second, _BATCH)
            times = begin + np.cumsum(gaps)
            yield from times.tolist()
            begin = float(times[-1])
    else:
        yield from _bursts(arrivals, begin, random_stream(seed, "arrivals", source.name))


def _bursts(arrivals: Arrivals, begin: float, generator: np.random.Generator) -> Iterator[float]:
    every = float(arrivals.every or 0)
    for number, size in enumerate(arrivals.size.numbers(generator)):
        yield from repeat(begin + number * every, round(size))
