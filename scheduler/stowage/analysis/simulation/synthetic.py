"""A workload from a ``Workload`` file, and from the objects of a cluster if there are any."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, repeat
from typing import Any

import numpy as np
from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.simulation.distributions import Distribution
from stowage.analysis.simulation.random_streams import random_stream
from stowage.analysis.simulation.timeline import (
    Happening,
    NodeJoins,
    NodeLeaves,
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
from stowage.api.objects.meta import ObjectMeta, OwnerReference
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Container, Pod, PodSpec
from stowage.api.values.resource_names import CPU, MEMORY
from stowage.api.values.resources import node_allocatable, pod_requests

_HOSTNAME = "kubernetes.io/hostname"
_ZONE = "topology.kubernetes.io/zone"
_MIB = 2**20
_BATCH = 1024
_MAX_KNOWN_SIZES = 4096


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
            _node_template(group, f"spec.nodes[{index}]", errors)
            for index, group in enumerate(self._spec.nodes)
        ]
        self._pods = [
            _pod_template(source, cluster, f"spec.pods[{index}]", errors)
            for index, source in enumerate(self._spec.pods)
        ]
        if errors:
            raise InvalidConfiguration(errors)

    def timeline(self, seed: int) -> Timeline:
        """The course with a seed; the same in every process."""
        spec = self._spec
        groups = list(zip(spec.nodes, self._nodes, strict=True))
        sources = zip(spec.pods, self._pods, strict=True)
        streams: list[Iterator[Happening]] = [
            _node_changes(group, node, spec, seed) for group, node in groups
        ]
        streams += [_arrivals(source, pod, spec, seed) for source, pod in sources]
        pending = {pod.spec.scheduler_name for pod in self._cluster.pods()}
        names = pending | {pod.spec.scheduler_name for pod in self._pods}
        return Timeline(
            self._objects,
            heapq.merge(*streams, key=lambda each: each.at_s),
            None if spec.duration is None or spec.drain else float(spec.duration),
            _expected_s(spec),
            tuple(sorted(names)),
        )

    def _objects(self) -> ClusterObjects:
        objects = ClusterObjects({kind: dict(each) for kind, each in self._cluster.by_kind.items()})
        for group, node in zip(self._spec.nodes, self._nodes, strict=True):
            if not group.from_:
                for index in range(group.count):
                    objects.add(_node(group, node, index))
        return objects


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
    except (InvalidObject, TypeError) as invalid:
        errors.append(ConfigError(f"{path}.template", group.name, f"a Node; {invalid}"))
        return Node(ObjectMeta(name=name))
    return node


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
        yield from (NodeJoins(begin, node) for node in nodes)
    end = _end_of(group.until, spec)
    if group.failures is not None:
        yield from _failures(group, nodes, end, seed)
    if group.until is not None:
        yield from (NodeLeaves(float(group.until), node.metadata.name) for node in nodes)


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
            yield NodeJoins(at_s, nodes[index])
            heapq.heappush(changes, (at_s + next(runs), index, False))
        else:
            yield NodeLeaves(at_s, nodes[index].metadata.name)
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
    lifetimes: Iterator[float | None] = repeat(None)
    if source.lifetime is not None:
        lifetimes = source.lifetime.numbers(random_stream(seed, "lifetimes", source.name))
    specs = _specs(source, pod, seed)
    end = _end_of(source.until, spec)
    meta = pod.metadata
    for index, at_s in enumerate(islice(times, source.count)):
        if at_s > end:
            return
        name = f"{source.name}-{index}"
        named = replace(meta, name=name, uid=f"{meta.namespace}/{name}")
        yield PodArrives(at_s, Pod(named, next(specs), pod.status), next(lifetimes))


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


def _specs(source: PodSource, pod: Pod, seed: int) -> Iterator[PodSpec]:
    """The specs of pods, with the drawn requests of their first container."""
    if not source.requests:
        return repeat(pod.spec)
    draws = [
        _amounts(name, each, random_stream(seed, "requests", source.name, name))
        for name, each in source.requests.items()
    ]
    return _Sizes(pod.spec, tuple(source.requests)).specs(zip(*draws, strict=True))


def _amounts(resource: str, sizes: Distribution, generator: np.random.Generator) -> Iterator[int]:
    """Drawn amounts: thousandths of a cpu; memory in bytes, whole MiB; others in whole units."""
    step = _MIB if resource == MEMORY else 1
    while True:
        drawn = np.round(sizes.draw(generator, _BATCH) / step) * step
        yield from map(int, drawn.tolist())


class _Sizes:
    """Makes specs with other requests; pods with equal requests share their spec."""

    def __init__(self, spec: PodSpec, resources: tuple[str, ...]) -> None:
        self._spec = spec
        self._resources = resources
        self._known: dict[tuple[int, ...], PodSpec] = {}

    @cached_property
    def _container(self) -> Container:
        return self._spec.containers[0]

    def specs(self, sizes: Iterator[tuple[int, ...]]) -> Iterator[PodSpec]:
        for amounts in sizes:
            spec = self._known.get(amounts)
            if spec is None:
                if len(self._known) >= _MAX_KNOWN_SIZES:
                    self._known.clear()
                spec = self._known[amounts] = self._sized(amounts)
            yield spec

    def _sized(self, amounts: tuple[int, ...]) -> PodSpec:
        container = self._container
        requests = dict(container.resources.requests)
        for resource, amount in zip(self._resources, amounts, strict=True):
            requests[resource] = f"{amount}m" if resource == CPU else amount
        resources = replace(container.resources, requests=requests)
        sized = replace(container, resources=resources)
        return replace(self._spec, containers=(sized, *self._spec.containers[1:]))
