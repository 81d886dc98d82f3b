"""Requests and limits of pods, and allocatable resources of nodes, as exact integers.

The sums are those of ``resource.PodRequests`` and ``PodLimits`` of component-helpers (v1.36): the
sum of containers, the peak of init containers, sidecars (restartable init containers) in both,
pod-level resources instead of container sums, plus overhead. For a container that is being resized
in place it is the largest of the requested, allocated and actual resources (the sum of maxima, as
in v1.36; later versions take the maximum of sums). Amounts are added in nano units and rounded up
once, at the end: cpu to thousandths, others to whole units.
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
_AmountsOf: TypeAlias = Callable[[Container], _Amounts]


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
    """The limits of a pod's spec, in the units of `pod_requests`.

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
    infeasible = _is_resize_infeasible(pod)
    total = _container_requests(pod, defaults, infeasible)
    if _has_pod_level(pod, "requests") and pod.spec.resources is not None:
        asked = _nano(pod.spec.resources.requests)
        if pod.status.resources is not None:
            in_effect = _nano(pod.status.resources.requests)
            _raise_to(in_effect, _nano(pod.status.allocated_resources or {}))
            asked = _resized(asked, in_effect, infeasible)
        _apply_pod_level(total, asked)
    _add(total, _nano(pod.spec.overhead))
    return total


def _limits(pod: Pod, _defaults: _Amounts) -> _Amounts:
    total = _aggregate(pod, _desired_limits, _desired_limits)
    if pod.spec.resources is not None:
        _apply_pod_level(total, _nano(pod.spec.resources.limits))
    for name, nano in _nano(pod.spec.overhead).items():
        if total.get(name):
            total[name] += nano
    return total


def _container_requests(pod: Pod, defaults: _Amounts, infeasible: bool) -> _Amounts:
    """The requests of all containers; of one being resized, the largest of the three amounts.

    The status counts for containers and sidecars, and only if it has the resources in effect.
    """
    statuses = _statuses_with_resources(pod)

    def desired(container: Container) -> _Amounts:
        return {**defaults, **_nano(container.resources.requests)}

    def effective(container: Container) -> _Amounts:
        status = statuses.get(container.name)
        if status is None or status.resources is None:
            return desired(container)
        amounts = {} if infeasible else _nano(container.resources.requests)
        _raise_to(amounts, _nano(status.resources.requests))
        _raise_to(amounts, _nano(status.allocated_resources or {}))
        return {**defaults, **amounts}

    return _aggregate(pod, effective if statuses else desired, desired)


def _aggregate(pod: Pod, amounts_of: _AmountsOf, amounts_of_init: _AmountsOf) -> _Amounts:
    """The sum of containers, or the peak while init containers run if that is larger."""
    total: _Amounts = {}
    for container in pod.spec.containers:
        _add(total, amounts_of(container))
    if not pod.spec.init_containers:
        return total
    sidecars: _Amounts = {}
    peak: _Amounts = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            own = amounts_of(container)
            _add(total, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            own = amounts_of_init(container)
            _add(own, sidecars)
            _raise_to(peak, own)
    _raise_to(total, peak)
    return total


def _desired_limits(container: Container) -> _Amounts:
    return _nano(container.resources.limits)


def _statuses_with_resources(pod: Pod) -> dict[str, ContainerStatus]:
    status = pod.status
    if not status.container_statuses and not status.init_container_statuses:
        return {}
    return {
        each.name: each
        for each in (*status.container_statuses, *status.init_container_statuses)
        if each.resources is not None
    }


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


def _resized(asked: _Amounts, in_effect: _Amounts, infeasible: bool) -> _Amounts:
    """The pod-level amounts during a resize: of the resources of the spec, the largest amount."""
    return {
        name: max(0 if infeasible else nano, in_effect.get(name, 0)) for name, nano in asked.items()
    }


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
