"""Requests and limits of pods, and allocatable resources of nodes, as exact integers.

The sums are those of ``resource.PodRequests`` and ``PodLimits`` of component-helpers (v1.36): the
sum of containers, the peak of init containers, sidecars (restartable init containers) in both,
pod-level resources instead of container sums, plus overhead. For a pod that is being resized in
place it is the largest of the requested, allocated and actual resources. Amounts are added in nano
units and rounded up once, at the end: cpu to thousandths, others to whole units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from stowage.api.decoding.errors import QUANTITY_EXPECTATION, InvalidObject, QuantityError
from stowage.api.objects.meta import Quantities
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Container, ContainerStatus, Pod
from stowage.api.values.quantity import INT64_MAX, quantity_nano_value, rounded_up
from stowage.api.values.quantity_fields import invalid_quantity
from stowage.api.values.resource_names import CPU, MEMORY, PODS, is_accounted, is_pod_level_resource

DEFAULT_CPU_MILLI_REQUEST = 100
DEFAULT_MEMORY_REQUEST = 200 * 1024 * 1024

_NANO_PER_UNIT = 10**9
_NON_ZERO_DEFAULTS = {
    CPU: DEFAULT_CPU_MILLI_REQUEST * 10**6,
    MEMORY: DEFAULT_MEMORY_REQUEST * _NANO_PER_UNIT,
}

_Amounts: TypeAlias = dict[str, int]
"""Resource name -> nano units."""
_ResourcesOf: TypeAlias = Callable[[Container], Quantities]


class PodUsage(NamedTuple):
    """What a pod uses on its node (``PodInfo.CalculateResource``).

    Attributes:
        requests: Resource name -> amount, cpu in thousandths; only accounted resources.
        nonzero_cpu_milli: The cpu request, with 100m for each container without one.
        nonzero_memory_bytes: The memory request, with 200Mi for each container without one.
    """

    requests: dict[str, int]
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int


def pod_requests(pod: Pod) -> dict[str, int]:
    """The requests of a pod: cpu in thousandths, others in whole units, rounded up.

    Raises:
        InvalidObject: A quantity of the pod is invalid, or a sum exceeds an int64.
    """
    return _integers(pod, _read(pod, _requests, {}))


def pod_limits(pod: Pod) -> dict[str, int]:
    """The limits of a pod, in the units of `pod_requests`.

    Raises:
        InvalidObject: A quantity of the pod is invalid, or a sum exceeds an int64.
    """
    return _integers(pod, _read(pod, _limits, {}))


def pod_usage(pod: Pod) -> PodUsage:
    """What a pod uses on its node, and its non-zero requests.

    Non-zero requests have a default for each container without a request. With pod-level requests,
    the default applies only to a resource that neither the pod level nor a container requests.

    Raises:
        InvalidObject: A quantity of the pod is invalid, or a sum exceeds an int64.
    """
    amounts = _read(pod, _requests, {})
    requests = _integers(pod, amounts)
    defaults = _NON_ZERO_DEFAULTS
    if _has_pod_level(pod, "requests"):
        defaults = {name: nano for name, nano in defaults.items() if name not in amounts}
    non_zero = _integers(pod, _read(pod, _requests, defaults)) if defaults else requests
    counted = {name: amount for name, amount in requests.items() if is_accounted(name)}
    return PodUsage(counted, non_zero.get(CPU, 0), non_zero.get(MEMORY, 0))


def node_allocatable(node: Node) -> dict[str, int]:
    """The allocatable resources of a node, in the units of `pod_requests`.

    Raises:
        InvalidObject: A quantity of the node is invalid or exceeds an int64.
    """
    amounts = {}
    for name, text in node.status.allocatable.items():
        if name == PODS or is_accounted(name):
            amount = _allocatable_amount(name, text)
            amounts[name] = _checked_amount(node, name) if amount is None else amount
    return amounts


@lru_cache(maxsize=65536)
def _allocatable_amount(name: str, text: str | int | float) -> int | None:
    """The amount in the units of the resource, cached: nodes are alike; None if it is invalid."""
    try:
        nano = quantity_nano_value(text)
    except QuantityError:
        return None
    return None if _exceeds_int64(name, nano) else _whole_units(name, nano)


def _checked_amount(node: Node, name: str) -> int:
    """The allocatable amount of one resource; the error says what is wrong with it."""
    field, text = f"status.allocatable[{name}]", node.status.allocatable[name]
    try:
        nano = quantity_nano_value(text)
    except QuantityError as error:
        raise InvalidObject(
            "Node", node.metadata.name, field, str(text), QUANTITY_EXPECTATION, node.metadata.uid
        ) from error
    return _integer("Node", node, field, name, nano)


def _read(pod: Pod, compute: Callable[[Pod, _Amounts], _Amounts], defaults: _Amounts) -> _Amounts:
    try:
        return compute(pod, defaults)
    except QuantityError as error:
        raise invalid_quantity(pod) from error


def _requests(pod: Pod, defaults: _Amounts) -> _Amounts:
    total = _container_requests(pod, defaults)
    if _has_pod_level(pod, "requests") and pod.spec.resources is not None:
        status = pod.status
        effective = _nano(pod.spec.resources.requests)
        if status.resources is not None or status.allocated_resources is not None:
            in_effect = status.resources.requests if status.resources is not None else {}
            effective = _resized(pod, effective, in_effect, status.allocated_resources or {})
        _apply_pod_level(total, effective)
    _add(total, _nano(pod.spec.overhead))
    return total


def _limits(pod: Pod, _defaults: _Amounts) -> _Amounts:
    total = _container_limits(pod)
    if pod.spec.resources is not None and (
        _has_pod_level(pod, "requests") or _has_pod_level(pod, "limits")
    ):
        effective = _nano(pod.spec.resources.limits)
        if pod.status.resources is not None:
            effective = _resized(pod, effective, pod.status.resources.limits)
        _apply_pod_level(total, effective)
    for name, nano in _nano(pod.spec.overhead).items():
        if total.get(name):
            total[name] += nano
    return total


def _container_requests(pod: Pod, defaults: _Amounts) -> _Amounts:
    """The sum over containers; during a resize the largest of requested, allocated, actual."""
    infeasible = _is_resize_infeasible(pod)
    statuses = _statuses_with_resources(pod)
    status = pod.status
    if status.allocated_resources and status.resources is not None and status.resources.requests:
        given, used = _nano(status.allocated_resources), _nano(status.resources.requests)
    elif statuses or infeasible:

        def given_to(container: Container) -> Quantities:
            found = statuses.get(container.name)
            if found is not None and found.allocated_resources is not None:
                return found.allocated_resources
            return {} if infeasible else container.resources.requests

        def used_by(container: Container) -> Quantities:
            found = statuses.get(container.name)
            if found is not None and found.resources is not None and found.resources.requests:
                return found.resources.requests
            return given_to(container)

        given, used = _aggregate(pod, given_to, defaults), _aggregate(pod, used_by, defaults)
    else:
        return _aggregate(pod, _desired_requests, defaults)
    total = {} if infeasible else _aggregate(pod, _desired_requests, defaults)
    _raise_to(total, used)
    _raise_to(total, given)
    return total


def _container_limits(pod: Pod) -> _Amounts:
    infeasible = _is_resize_infeasible(pod)
    statuses = _statuses_with_resources(pod)
    if pod.status.resources is not None and pod.status.resources.limits:
        used = _nano(pod.status.resources.limits)
    elif statuses or infeasible:

        def used_by(container: Container) -> Quantities:
            found = statuses.get(container.name)
            if found is not None and found.resources is not None and found.resources.limits:
                return found.resources.limits
            return {} if infeasible else container.resources.limits

        used = _aggregate(pod, used_by, {})
    else:
        return _aggregate(pod, _desired_limits, {})
    total = {} if infeasible else _aggregate(pod, _desired_limits, {})
    _raise_to(total, used)
    return total


def _aggregate(pod: Pod, resources_of: _ResourcesOf, defaults: _Amounts) -> _Amounts:
    """The sum of containers, or the peak while init containers run if that is larger."""
    total: _Amounts = {}
    for container in pod.spec.containers:
        _add(total, {**defaults, **_nano(resources_of(container))})
    if not pod.spec.init_containers:
        return total
    sidecars: _Amounts = {}
    peak: _Amounts = {}
    for container in pod.spec.init_containers:
        own = {**defaults, **_nano(resources_of(container))}
        if container.restart_policy == "Always":
            _add(total, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            _add(own, sidecars)
            _raise_to(peak, own)
    _raise_to(total, peak)
    return total


def _desired_requests(container: Container) -> Quantities:
    return container.resources.requests


def _desired_limits(container: Container) -> Quantities:
    return container.resources.limits


def _statuses_with_resources(pod: Pod) -> dict[str, ContainerStatus]:
    """The container statuses with resources, by name; containers override init containers."""
    found: dict[str, ContainerStatus] = {}
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        if status.allocated_resources is not None or status.resources is not None:
            found.setdefault(status.name, status)
    return found


def _is_resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _has_pod_level(pod: Pod, which: str) -> bool:
    if pod.spec.resources is None:
        return False
    named: Quantities = getattr(pod.spec.resources, which)
    return any(map(is_pod_level_resource, named))


def _resized(pod: Pod, asked: _Amounts, *others: Quantities) -> _Amounts:
    """The largest of the pod-level amounts; overhead is subtracted from those of the status."""
    effective = {} if _is_resize_infeasible(pod) else dict(asked)
    overhead = _nano(pod.spec.overhead)
    for other in others:
        amounts = _nano(other)
        _raise_to(
            effective,
            {
                name: max(nano - overhead[name], 0) if name in overhead else nano
                for name, nano in amounts.items()
            },
        )
    return effective


def _apply_pod_level(total: _Amounts, effective: _Amounts) -> None:
    total.update({n: nano for n, nano in effective.items() if is_pod_level_resource(n)})


def _nano(quantities: Quantities) -> _Amounts:
    return {name: quantity_nano_value(text) for name, text in quantities.items()}


def _add(total: _Amounts, more: Mapping[str, int]) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise_to(total: _Amounts, floor: Mapping[str, int]) -> None:
    for name, nano in floor.items():
        if name not in total or nano > total[name]:
            total[name] = nano


def _integers(pod: Pod, amounts: _Amounts) -> dict[str, int]:
    return {
        name: _integer("Pod", pod, f"spec.containers[*].resources[{name}]", name, nano)
        for name, nano in amounts.items()
    }


def _integer(kind: str, holder: Pod | Node, field: str, name: str, nano: int) -> int:
    if _exceeds_int64(name, nano):
        expectation = f"at most {INT64_MAX}" + ("m" if name == CPU else "")
        metadata = holder.metadata
        raise InvalidObject(
            kind,
            metadata.namespaced_name,
            field,
            f"{nano // _NANO_PER_UNIT}",
            expectation,
            metadata.uid,
        )
    return _whole_units(name, nano)


def _exceeds_int64(name: str, nano: int) -> bool:
    limit: int = INT64_MAX * 10 ** (9 + _unit_exponent(name))
    return abs(nano) > limit


def _whole_units(name: str, nano: int) -> int:
    return rounded_up(nano, _unit_exponent(name))


def _unit_exponent(name: str) -> int:
    """The power of ten of a resource's unit: cpu is counted in thousandths."""
    return -3 if name == CPU else 0
