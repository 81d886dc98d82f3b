"""From the devices that the allocator took to the allocation in the status of a claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from stowage.api.objects.device import (
    FROM_CLAIM,
    FROM_CLASS,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.values.node_affinity import NODE_NAME_FIELD
from stowage.plugins.dynamic_resources.allocator import AllocationError, Taken
from stowage.plugins.dynamic_resources.requests import ClaimRequests, Request
from stowage.state.devices.classes import DeviceClasses
from stowage.state.devices.device_info import NodeCondition


def allocation_result(
    claim: ClaimRequests,
    taken: Sequence[Taken],
    chosen: Sequence[int],
    classes: DeviceClasses,
    node_name: str,
    share_id: Callable[[int], str],
) -> AllocationResult:
    """The allocation of a claim.

    Args:
        claim: What the claim asks for.
        taken: The devices, in order.
        chosen: For each request the index of the chosen alternative.
        classes: The device classes, which may bring configuration.
        node_name: The node.
        share_id: Returns a new share ID for the device at a position.

    Raises:
        AllocationError: A slice has a node selector with several terms.
    """
    results = tuple(_result(each, share_id, index) for index, each in enumerate(taken))
    config = (*_class_config(claim, chosen, classes), *_claim_config(claim, chosen))
    return AllocationResult(
        DeviceAllocationResult(results, config), _node_selector(taken, node_name)
    )


def _result(
    taken: Taken, share_id: Callable[[int], str], index: int
) -> DeviceRequestAllocationResult:
    device, request = taken.device, taken.request
    return DeviceRequestAllocationResult(
        request=request.full_name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if request.has_admin_access else None,
        tolerations=request.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=share_id(index) if device.signature.allows_multiple else None,
        consumed_capacity={name: each.text for name, each in taken.consumed.items()},
    )


def _chosen(claim: ClaimRequests, chosen: Sequence[int]) -> list[Request]:
    return [
        alternatives[index]
        for alternatives, index in zip(claim.requests, chosen, strict=True)
        if alternatives
    ]


def _class_config(
    claim: ClaimRequests, chosen: Sequence[int], classes: DeviceClasses
) -> Iterable[DeviceAllocationConfiguration]:
    """The configuration of each class once, with the requests of the class."""
    by_class: dict[str, list[str]] = {}
    for request in _chosen(claim, chosen):
        by_class.setdefault(request.class_name, []).append(request.full_name)
    for name, requests in by_class.items():
        device_class = classes.get(name)
        for config in () if device_class is None else device_class.spec.config:
            yield DeviceAllocationConfiguration(config.opaque, FROM_CLASS, tuple(requests))


def _claim_config(
    claim: ClaimRequests, chosen: Sequence[int]
) -> Iterable[DeviceAllocationConfiguration]:
    """The configuration of the claim, once per request that it names."""
    for config in claim.spec.devices.config:
        named = set(config.requests)
        times = sum(
            request.base_name in named or request.full_name in named
            for request in _chosen(claim, chosen)
        )
        for _ in range(times if named else 1):
            yield DeviceAllocationConfiguration(config.opaque, FROM_CLAIM, config.requests)


def _node_selector(taken: Sequence[Taken], node_name: str) -> NodeSelector | None:
    """Where the devices can be reached; None stands for all nodes."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in taken:
        nodes = _nodes_of(each)
        if (nodes is not None and nodes.node_name) or each.device.binds_to_node:
            here = NodeSelectorRequirement(NODE_NAME_FIELD, "In", (node_name,))
            return NodeSelector((NodeSelectorTerm(match_fields=(here,)),))
        terms = () if nodes is None or nodes.selector is None else _terms(nodes.selector)
        if len(terms) > 1:
            text = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise AllocationError(f"create NodeSelector: {text}")
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))


def _terms(selector: NodeSelector) -> tuple[NodeSelectorTerm, ...]:
    return selector.node_selector_terms


def _nodes_of(taken: Taken) -> NodeCondition | None:
    if taken.device.nodes is not None:
        return taken.device.nodes
    row = taken.device.row
    for each in taken.pool.slices:
        if each.devices and each.devices[0].row <= row <= each.devices[-1].row:
            return each.nodes
    return None


def _add_new(known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for each in more:
        if not any(
            (each.key, each.operator) == (it.key, it.operator)
            and set(each.values) == set(it.values)
            for it in known
        ):
            known.append(each)
