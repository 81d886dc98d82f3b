"""Filter: where claims are unavailable, and which extended resources DRA has to serve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from stowage.api.objects.device import ResourceClaim
from stowage.api.values.node_affinity import compile_node_selector
from stowage.framework.verdict import BoolArray
from stowage.plugins.dynamic_resources.answers import FITS
from stowage.plugins.dynamic_resources.conditions import (
    Readiness,
    condition_state,
    has_binding_conditions,
    seconds_left,
)
from stowage.plugins.dynamic_resources.extended import ExtendedRequests, extended_requests
from stowage.plugins.dynamic_resources.pod_devices import PodDevices, Variant
from stowage.state.devices.classes import is_dra_resource_name
from stowage.state.nodes.node_matching import node_terms_mask
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot


def extended_resources(pod: PodInfo) -> tuple[str, ...]:
    """The requested resources that DRA may serve."""
    return tuple(
        name for name, amount in pod.requests.items() if amount and is_dra_resource_name(name)
    )


def unavailable(
    found: PodDevices,
    snapshot: Snapshot,
    timeout_s: float | None,
    wall_clock: Callable[[], float],
) -> Iterator[tuple[str, BoolArray]]:
    """For each allocated claim that is unavailable somewhere: its key, and ``bool[rows]``.

    Args:
        found: The claims.
        snapshot: The cluster.
        timeout_s: How long devices may take to become ready; None if that does not matter.
        wall_clock: Returns the seconds since the epoch.
    """
    for claim in found.claims:
        allocation = claim.status.allocation
        if allocation is None:
            continue
        key = claim.metadata.namespaced_name
        if timeout_s is not None and _is_unready(claim, timeout_s, wall_clock):
            yield key, np.ones(snapshot.num_rows, dtype=np.bool_)
        elif allocation.node_selector is not None:
            terms = compile_node_selector(allocation.node_selector)
            elsewhere = ~node_terms_mask(snapshot.all_nodes, terms)
            if elsewhere.any():
                yield key, elsewhere


def _is_unready(claim: ResourceClaim, timeout_s: float, wall_clock: Callable[[], float]) -> bool:
    """Whether a device failed to become ready, or has not become ready in time."""
    if not has_binding_conditions(claim):
        return False
    state = condition_state(claim)
    if state.readiness is Readiness.READY:
        return False
    if state.readiness is Readiness.FAILED:
        return True
    left = seconds_left(claim, timeout_s, wall_clock())
    return left is not None and left < 0


def by_provided_resources(
    found: PodDevices, pod: PodInfo, snapshot: Snapshot
) -> Iterator[tuple[BoolArray | None, ExtendedRequests | None]]:
    """The nodes by the extended resources that DRA has to serve there, and the requests for them.

    No requests if there is nothing to allocate for extended resources.
    """
    if not found.extended:
        yield None, None
        return
    classes = snapshot.devices.classes
    served = [name for name in found.extended if classes.serving(name) is not None]
    lacks = [_lacks(name, snapshot) for name in served]
    kinds = np.zeros(snapshot.num_rows, dtype=np.int64)
    for bit, mask in enumerate(lacks):
        kinds |= mask.astype(np.int64) << bit
    for kind in np.unique(kinds[snapshot.exists]).tolist():
        by_dra = {name: _serving(name, snapshot) for i, name in enumerate(served) if kind >> i & 1}
        nodes = kinds == kind
        if not by_dra and not found.claims:
            yield nodes, None
        else:
            yield nodes, extended_requests(pod.spec, by_dra)


def lacking(found: PodDevices, pod: PodInfo, snapshot: Snapshot) -> BoolArray:
    """``bool[rows]``: nodes without a requested extended resource that no class serves."""
    del pod
    mask = np.zeros(snapshot.num_rows, dtype=np.bool_)
    for name in found.extended:
        if snapshot.devices.classes.serving(name) is None:
            for row in np.flatnonzero(_lacks(name, snapshot) & snapshot.exists).tolist():
                node = snapshot.node(row)
                mask[row] = node is None or name not in node.status.allocatable
    return mask


def merged(variants: Sequence[Variant], num_rows: int) -> tuple[NDArray[np.int8], dict[int, str]]:
    """``int8[rows]``: the codes of all nodes, and the errors by row."""
    codes = np.full(num_rows, FITS, dtype=np.int8)
    errors: dict[int, str] = {}
    for variant in variants:
        answers = variant.answers
        if answers is None:
            continue
        if variant.nodes is None:
            return answers.codes, answers.errors
        codes[variant.nodes] = answers.codes[variant.nodes]
        errors |= {row: text for row, text in answers.errors.items() if variant.nodes[row]}
    return codes, errors


def _lacks(resource: str, snapshot: Snapshot) -> BoolArray:
    """``bool[rows]``: nodes that provide none of a resource themselves."""
    column = snapshot.resources.index_of(resource)
    if column is None:
        return np.ones(snapshot.num_rows, dtype=np.bool_)
    lacks: BoolArray = snapshot.allocatable[:, column] == 0
    return lacks


def _serving(resource: str, snapshot: Snapshot) -> str:
    device_class = snapshot.devices.classes.serving(resource)
    return "" if device_class is None else device_class.metadata.name
