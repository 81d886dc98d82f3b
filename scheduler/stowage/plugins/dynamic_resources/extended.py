"""Extended resources that DRA serves: the claim that a pod gets for them on a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from stowage.api.objects.device import (
    EXACT_COUNT,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from stowage.api.objects.pod import Container, ContainerExtendedResourceRequest, PodSpec
from stowage.api.values.quantity import quantity_value

_ALWAYS = "Always"


class ExtendedRequests(msgspec.Struct, frozen=True):
    """What a pod needs of extended resources by DRA on a node.

    Attributes:
        spec: The spec of the claim.
        mappings: The request that each container uses for each resource.
    """

    spec: ResourceClaimSpec
    mappings: tuple[ContainerExtendedResourceRequest, ...]


class _Own(msgspec.Struct, frozen=True):
    """The request that a short-lived container needs for itself, and the mappings it has."""

    container: str
    request: DeviceRequest | None
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def extended_requests(spec: PodSpec, classes: Mapping[str, str]) -> ExtendedRequests:
    """The requests for extended resources (``createRequestsAndMappings``).

    Containers and sidecars have requests of their own. Other init containers run before: they
    reuse requests of containers behind them, and of what they need beyond that only the largest
    request is kept.

    Args:
        spec: The pod.
        classes: Resource -> the class that serves it on the node.
    """
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(classes):
        own, used = _for_resource(spec, resource, classes[resource])
        requests += own
        mappings += used
    requests.sort(key=lambda each: each.name)
    return ExtendedRequests(ResourceClaimSpec(DeviceClaim(tuple(requests))), tuple(mappings))


def _for_resource(
    spec: PodSpec, resource: str, class_name: str
) -> tuple[list[DeviceRequest], list[ContainerExtendedResourceRequest]]:
    containers = (*spec.init_containers, *spec.containers)
    num_init = len(spec.init_containers)
    make = _request_maker(resource, class_name)
    long_lived: dict[int, DeviceRequest] = {}
    mappings: list[ContainerExtendedResourceRequest] = []
    for index, container in enumerate(containers):
        if index < num_init and container.restart_policy != _ALWAYS:
            continue
        wanted = _wanted(container, resource)
        if wanted:
            request = long_lived[index] = make(index, container, wanted)
            mappings.append(_mapping(container, resource, request.name))
    short_lived = [
        _short_lived(index, container, resource, long_lived, make)
        for index, container in enumerate(containers[:num_init])
        if container.restart_policy != _ALWAYS
    ]
    largest = _largest(short_lived)
    for each in short_lived:
        mappings += each.mappings
        if each.request is not None and largest is not None:
            own_mapping = ContainerExtendedResourceRequest(each.container, resource, largest.name)
            mappings.append(own_mapping)
    own = list(long_lived.values())
    return (own if largest is None else [*own, largest]), mappings


def _short_lived(
    index: int,
    container: Container,
    resource: str,
    long_lived: Mapping[int, DeviceRequest],
    make: Callable[[int, Container, int], DeviceRequest],
) -> _Own:
    """What an init container reuses of the containers behind it, and what it needs beyond."""
    missing = _wanted(container, resource)
    mappings = []
    for behind, request in long_lived.items():
        if behind > index and missing > 0:
            missing -= _count(request)
            mappings.append(_mapping(container, resource, request.name))
    own = make(index, container, missing) if missing > 0 else None
    return _Own(container.name, own, tuple(mappings))


def _request_maker(
    resource: str, class_name: str
) -> Callable[[int, Container, int], DeviceRequest]:
    def make(index: int, container: Container, number: int) -> DeviceRequest:
        position = sorted(container.resources.requests).index(resource)
        exactly = ExactDeviceRequest(class_name, allocation_mode=EXACT_COUNT, count=number)
        return DeviceRequest(f"container-{index}-request-{position}", exactly)

    return make


def _largest(short_lived: Sequence[_Own]) -> DeviceRequest | None:
    requests: Iterable[DeviceRequest] = (
        each.request for each in short_lived if each.request is not None
    )
    return max(requests, key=_count, default=None)


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container.name, resource, request)


def _wanted(container: Container, resource: str) -> int:
    text = container.resources.requests.get(resource)
    return 0 if text is None else quantity_value(text)


def _count(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count
