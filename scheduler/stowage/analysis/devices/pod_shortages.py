"""Why DynamicResources rejects nodes: which request of which claim fails there, and near misses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from stowage.analysis.devices.failing_requests import Failing, NodeRequests, in_groups
from stowage.analysis.devices.funnel import NodeDevices, nano_text
from stowage.analysis.devices.shortage import DeviceShortage, Why, number_of_devices
from stowage.analysis.explanation import NearMiss, NodeVerdict
from stowage.analysis.near_misses import taint_text
from stowage.framework import CycleState
from stowage.plugins.dynamic_resources import DynamicResources
from stowage.plugins.dynamic_resources.answers import FITS
from stowage.plugins.dynamic_resources.plugin import variant_at
from stowage.plugins.dynamic_resources.pod_claims import SPECIAL_CLAIM
from stowage.plugins.dynamic_resources.pod_devices import PodDevices, Variant
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

_ONE_CHANGE = 1.0


class NodeChange(msgspec.Struct, frozen=True):
    """A change that would let the pod get its devices on a node, and how far it is."""

    text: str
    distance: float


class PodShortages(msgspec.Struct, frozen=True):
    """What a pod lacks of devices.

    Attributes:
        shortages: The failing requests, equal ones of several nodes as one.
        changes: Node -> the changes that help there.
    """

    shortages: tuple[DeviceShortage, ...] = ()
    changes: dict[str, tuple[NodeChange, ...]] = msgspec.field(default_factory=dict)


def pod_shortages(
    state: CycleState, pod: PodInfo, snapshot: Snapshot, verdicts: Iterable[NodeVerdict]
) -> PodShortages:
    """What a pod lacks of devices on the nodes that DynamicResources rejects.

    Args:
        state: The cycle's state after Filter.
        pod: The pod.
        snapshot: The cluster.
        verdicts: The verdicts of nodes.
    """
    found = state.get(PodDevices)
    if found is None or found.variants is None:
        return PodShortages()
    rejected = [each.node for each in verdicts if _is_rejected(each)]
    rows = [(name, row) for name in rejected if (row := snapshot.row_of(name)) is not None]
    shortages: list[tuple[str, DeviceShortage]] = []
    changes: dict[str, tuple[NodeChange, ...]] = {}
    asked = _Asked(found, pod, snapshot)
    for name, row in rows:
        own, helpful = asked.of_row(row)
        shortages += [(name, each) for each in own]
        if helpful:
            changes[name] = helpful
    return PodShortages(in_groups(iter(shortages)), changes)


def with_device_misses(
    misses: Sequence[NearMiss], nodes: Sequence[NodeVerdict], lacking: PodShortages
) -> list[NearMiss]:
    """The near misses, with those about devices instead of the plugin's reason."""
    name = DynamicResources.name
    groups: defaultdict[NodeChange, list[str]] = defaultdict(list)
    for each in nodes:
        if _is_rejected(each) and not each.also_rejected_by:
            for change in lacking.changes.get(each.node, ()):
                groups[change].append(each.node)
    found = [NearMiss(each.text, name, tuple(on), each.distance) for each, on in groups.items()]
    known = {node for each in found for node in each.nodes}
    for miss in misses:
        left = tuple(node for node in miss.nodes if miss.plugin != name or node not in known)
        if left:
            found.append(replace(miss, nodes=left))
    return sorted(found, key=lambda each: (each.distance, -len(each.nodes), each.change))


def _is_rejected(verdict: NodeVerdict) -> bool:
    by = (verdict.rejected_by, *verdict.also_rejected_by)
    return any(each is not None and each.plugin == DynamicResources.name for each in by)


class _Asked:
    """The answers about nodes; nodes whose devices are alike get one answer."""

    def __init__(self, found: PodDevices, pod: PodInfo, snapshot: Snapshot) -> None:
        self._found, self._snapshot = found, snapshot
        self._names = [each.metadata.namespaced_name for each in found.unallocated]
        self._special = f"{pod.namespace}/{SPECIAL_CLAIM}"
        self._known: dict[
            tuple[object, ...], tuple[tuple[DeviceShortage, ...], tuple[NodeChange, ...]]
        ] = {}

    def of_row(self, row: int) -> tuple[tuple[DeviceShortage, ...], tuple[NodeChange, ...]]:
        """(what fails on a node, what would help)."""
        elsewhere = tuple(
            DeviceShortage(claim, Why.ELSEWHERE)
            for claim, where in self._found.unavailable.items()
            if where[row]
        )
        variant = variant_at(self._found.variants or (), row)
        if variant is None or variant.answers is None or variant.answers.codes[row] == FITS:
            return elsewhere, ()
        node = self._node(row)
        key = (id(variant), *self._key(node))
        if key not in self._known:
            self._known[key] = self._answer(variant, node)
        shortages, changes = self._known[key]
        return (*elsewhere, *shortages), () if elsewhere else changes

    def _node(self, row: int) -> NodeDevices:
        slices = self._snapshot.devices.slices
        return NodeDevices(*slices.node_of(row), slices.pools_of(row))

    def _key(self, node: NodeDevices) -> Iterator[object]:
        """Equal for nodes on which requests find the same, names of devices aside."""
        if any(not pool.is_usable or pool.counter_sets for pool in node.pools):
            yield node.node
        allocated = self._snapshot.devices.allocated
        for pool, device in node.usable():
            yield pool.id.driver
            yield device.signature.id
            yield tuple((each.key, each.value, each.effect) for each in device.taints)
            yield device.id in allocated.whole
            yield tuple(sorted(allocated.consumed.get(device.id, {}).items()))
            yield device.is_withheld

    def _answer(
        self, variant: Variant, node: NodeDevices
    ) -> tuple[tuple[DeviceShortage, ...], tuple[NodeChange, ...]]:
        names = self._names if variant.extended is None else [*self._names, self._special]
        requests = NodeRequests(self._snapshot.devices, node, variant.template.claims, names)
        failing = requests.failing()
        shortages = tuple(each.shortage for each in failing)
        return shortages, tuple(_changes(requests, failing))


def _changes(requests: NodeRequests, failing: Sequence[Failing]) -> Iterator[NodeChange]:
    """What would help; every change was tried."""
    if not failing or any(each.shortage.why is Why.UNDECIDED for each in failing):
        return
    nearest = _nearest_alternatives(failing)
    if not any(each.shortage.why is Why.POOL or each.request.wants_all for each in nearest):
        yield _more_devices(nearest)
    if len(nearest) == 1:
        yield from _changes_of_request(requests, nearest[0])


def _more_devices(failing: Sequence[Failing]) -> NodeChange:
    more: Counter[str] = Counter()
    for each in failing:
        more[each.shortage.device_class] += each.shortage.short_by
    texts = [f"{_more(number)} of class {name}" for name, number in more.items()]
    verb = "was" if more.total() == 1 else "were"
    match = " that its selectors match" if any(e.request.selectors for e in failing) else ""
    return NodeChange(f"{' and '.join(texts)}{match} {verb} free", more.total())


def _changes_of_request(requests: NodeRequests, failing: Failing) -> Iterator[NodeChange]:
    name, found = f"request {failing.request.full_name}", failing.funnel
    if failing.request.wants_all and failing.shortage.why is Why.IN_USE:
        text = f"all devices of class {failing.request.class_name} were free"
        yield NodeChange(text, failing.shortage.short_by)
    if found.taints and requests.helps_to_tolerate(failing):
        texts = " and ".join(map(taint_text, found.taints))
        yield NodeChange(f"{name} tolerated {texts}", _ONE_CHANGE * len(found.taints))
    if failing.shortage.why is Why.SELECTOR and requests.helps_to_select_all(failing):
        details = f" ({', '.join(failing.shortage.details)})" if failing.shortage.details else ""
        yield NodeChange(f"the selector of {name} matched{details}", _ONE_CHANGE)
    if failing.shortage.why is Why.CAPACITY and requests.helps_to_ask_for_less(failing):
        less = " and ".join(f"{nano_text(it.lack)} less {it.name}" for it in found.shortfalls)
        share = max(each.lack / max(each.wanted, 1) for each in found.shortfalls)
        yield NodeChange(f"{name} asked for {less}", share)
    if failing.shortage.why is Why.COUNTER and requests.helps_to_free_counters(failing):
        more = " and ".join(f"{nano_text(it.lack)} more {it.name}" for it in found.counters)
        yield NodeChange(f"{more} were free", _ONE_CHANGE)


def _nearest_alternatives(failing: Sequence[Failing]) -> list[Failing]:
    """Of each request the alternative that lacks the fewest devices."""
    nearest: dict[tuple[int, int], Failing] = {}
    for each in failing:
        key = (each.claim, each.index)
        if key not in nearest or each.shortage.short_by < nearest[key].shortage.short_by:
            nearest[key] = each
    return list(nearest.values())


def _more(number: int) -> str:
    count, _, noun = number_of_devices(number).partition(" ")
    return f"{count} more {noun}"
