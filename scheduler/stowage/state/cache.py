"""The cluster cache: nodes, the pods on them, and the pods that the scheduler assumed on them.

The states of a pod (by UID) in the cache:

                 assume_pod                     update_pod, same node
    +---------+ ------------> +---------+ --------------------------> +-------+ <--+ update_pod,
    | unknown |  forget_pod   | assumed |   update_pod, other node    | added |    | any node
    |         | <------------ |         | --------------------------> |       | ---+
    +---------+  remove_pod   +---------+     (moved, reported)       +-------+
      |     ^                                                           |   ^
      |     +-------------------- remove_pod ---------------------------+   |
      +-------------------------- update_pod -------------------------------+

An assumed pod does not expire: the engine finds out whether its binding failed. An added pod cannot
be forgotten, only removed. An event older than the known version changes nothing.

Nodes and pods arrive by different watches, in any order. A pod on a node that is unknown or deleted
is kept on an imaginary row, which snapshots do not show as a node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec.structs import replace

from stowage.api.cluster_events import ActionType
from stowage.api.decoding.errors import require_identity
from stowage.api.objects.device import DeviceObject, ResourceClaim
from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.objects.volume import PersistentVolume, PersistentVolumeClaim, StorageObject
from stowage.api.values.reserved_annotations import reserved_annotations
from stowage.state.changes import (
    NOTHING_CHANGED,
    DeviceObjectChange,
    NodeChange,
    PodChange,
    StorageChange,
    is_older,
    node_update_actions,
    pod_update_actions,
    same_columns,
)
from stowage.state.cluster_state import ClusterState
from stowage.state.custom_objects import JsonObject
from stowage.state.devices.devices import ClaimAllocation
from stowage.state.devices.features import ALL_FEATURES, DeviceFeatures
from stowage.state.pods.pod_class import PodClasses
from stowage.state.pods.pod_groups import KnownGroup, PodGroups
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import LastAsked, Snapshot
from stowage.state.storage.updater import StorageUpdater
from stowage.state.validation import InvariantViolation, state_validation_steps

__all__ = ["ClusterCache", "InvariantViolation"]

_TERMINAL_PHASES = frozenset(("Succeeded", "Failed"))


class ClusterCache:
    """The only writer of the state; ``Cache`` of kube-scheduler v1.36.

    The ``update_`` methods add an unknown object. The ``remove_`` methods ignore one.

    Args:
        features: The parts of dynamic resource allocation that are switched on.
        pod_level: Whether resources of a pod as a whole count.

    Attributes:
        classes: The equivalence classes of all pods, an argument of `make_pod_info`.
    """

    def __init__(self, features: DeviceFeatures = ALL_FEATURES, *, pod_level: bool = True) -> None:
        self.classes = PodClasses(pod_level=pod_level)
        self._state = ClusterState(features)
        self._assumed: set[str] = set()
        self._last = LastAsked()
        self._snapshot = Snapshot(self._state, self._last)
        self._storage = StorageUpdater(self._state)

    def snapshot(self) -> Snapshot:
        """The cluster as it is now; the same object until something changes."""
        if self._snapshot.generation != self._state.generation:
            self._snapshot = Snapshot(self._state, self._last)
        return self._snapshot

    def update_node(self, node: Node) -> NodeChange:
        """Add or update a node; an update that changes no column is cheap.

        Raises:
            InvalidObject: A quantity cannot be parsed; the known version stays.
        """
        if not node.metadata.name:
            require_identity("Node", "", "", node.metadata.uid)
        columns = self._state.columns
        row = columns.row_of(node.metadata.name)
        old = None if row is None else columns.nodes[row]
        if old is None or row is None:
            columns.set_node(node)
            self._state.generation += 1
            return NodeChange(None, node, ActionType.ADD)
        if old.metadata.uid == node.metadata.uid and is_older(
            node.metadata.resource_version, old.metadata.resource_version
        ):
            return NodeChange(old, old, NOTHING_CHANGED, ignored=True)
        if same_columns(old, node):
            columns.keep_node(row, node)
        else:
            columns.set_node(node)
        self._state.generation += 1
        return NodeChange(old, node, node_update_actions(old, node))

    def remove_node(self, name: str) -> Node | None:
        """Remove a node; its pods stay until they are removed. None if it is unknown."""
        columns = self._state.columns
        row = columns.row_of(name)
        node = None if row is None else columns.nodes[row]
        if node is None or row is None:
            return None
        columns.unset_node(row)
        columns.free_if_unused(row)
        self._state.generation += 1
        return node

    def update_pod(self, pod: PodInfo) -> PodChange:
        """Add, update or confirm a pod on a node.

        A pod without a node is an update of an assumed pod whose binding is in progress.

        Raises:
            ValueError: The pod has no node and is not assumed.
        """
        old = self._state.placed.get(pod.uid)
        if not pod.node_name:
            return self._update_pending_pod(old, pod)
        if pod.phase in _TERMINAL_PHASES:
            return self._update_terminal_pod(pod)
        if old is None:
            self._add(pod)
            self._state.pod_groups.see_assigned(pod)
            return PodChange(None, pod, ActionType.ADD)
        if is_older(pod.resource_version, old.resource_version):
            return PodChange(old, old, NOTHING_CHANGED, ignored=True)
        confirmed = pod.uid in self._assumed
        self._assumed.discard(pod.uid)
        self._replace(old, pod)
        self._state.pod_groups.see_assigned(pod)
        moved = pod.node_name != old.node_name
        return PodChange(
            old,
            pod,
            ActionType.ADD if confirmed or moved else pod_update_actions(old, pod),
            confirmed=confirmed and not moved,
            moved_from=old.node_name if moved else None,
        )

    def remove_pod(self, uid: str) -> PodInfo | None:
        """Remove a pod that was deleted or has ended; None if it is not on a node."""
        pod = self._state.placed.get(uid)
        if pod is not None:
            self._assumed.discard(uid)
            self._remove(pod)
        return pod

    def assume_pod(self, pod: PodInfo, node_name: str) -> PodInfo:
        """Place a pod on a node before it is bound there; returns it with that node.

        Raises:
            ValueError: The pod is on a node already, assumed or not.
        """
        known = self._state.placed.get(pod.uid)
        if known is not None:
            raise ValueError(
                f"Pod {pod.key} ({pod.uid}) is on node {known.node_name} already "
                f"and cannot be assumed on {node_name}"
            )
        placed = pod.on_node(node_name)
        self._add(placed)
        self._assumed.add(pod.uid)
        self._state.pod_groups.see_assumed(placed)
        return placed

    def annotate_assumed(self, uid: str, annotations: Mapping[str, str]) -> None:
        """Note what an assumed pod takes of its node; its Binding will write the annotations."""
        pod = self._state.placed.get(uid)
        if pod is not None and uid in self._assumed:
            merged = {**dict(pod.reserved), **annotations}
            self._replace(pod, replace(pod, reserved=reserved_annotations(merged)))

    def forget_pod(self, uid: str) -> PodInfo | None:
        """Undo `assume_pod`; None if the pod is not assumed. It counts as pending in its group."""
        if uid not in self._assumed:
            return None
        pod = self.remove_pod(uid)
        if pod is not None:
            self._state.pod_groups.see_pending(pod)
        return pod

    def take_out(self, pod: PodInfo) -> None:
        """Count a placed pod on no node until `bring_back`; to try what its end would change."""
        self._remove(pod)

    def bring_back(self, pod: PodInfo) -> None:
        """Undo `take_out`; the pod is assumed or assigned as it was."""
        self._add(pod)
        if pod.uid in self._assumed:
            self._state.pod_groups.see_assumed(pod)
        else:
            self._state.pod_groups.see_assigned(pod)

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod is assumed, and not confirmed yet."""
        return uid in self._assumed

    def get_pod(self, uid: str) -> PodInfo | None:
        """The pod with this UID, if it is on a node, assumed or not."""
        return self._state.placed.get(uid)

    def pods_on(self, node_name: str) -> Collection[PodInfo]:
        """The pods on a node, assumed ones included."""
        row = self._state.columns.row_of(node_name)
        return () if row is None else self._state.placed.on_row(row)

    def update_namespace(self, namespace: Namespace) -> bool:
        """Add or update a namespace; returns whether it is new or its labels changed."""
        return self._changed(self._state.namespaces.update(namespace))

    def remove_namespace(self, name: str) -> bool:
        """Remove a namespace; returns whether it was known."""
        return self._changed(self._state.namespaces.remove(name))

    def update_workload(
        self, kind: str, namespace: str, name: str, selector: LabelSelector | None
    ) -> bool:
        """Add or update a Service or controller; returns whether its selector changed."""
        return self._changed(self._state.workloads.update(kind, namespace, name, selector))

    def remove_workload(self, kind: str, namespace: str, name: str) -> bool:
        """Remove a Service or controller; returns whether it was known."""
        return self._changed(self._state.workloads.remove(kind, namespace, name))

    def update_storage(self, obj: StorageObject) -> StorageChange:
        """Add or update a storage object."""
        return self._storage.update(obj)

    def remove_storage(self, kind: type[StorageObject], key: str) -> StorageObject | None:
        """Remove a storage object by ``namespace/name`` or name; None if it is unknown."""
        return self._storage.remove(kind, key)

    def assume_storage(
        self,
        volumes: Iterable[PersistentVolume],
        claims: Iterable[PersistentVolumeClaim],
        pod_uid: str,
    ) -> None:
        """Assume that volumes and claims are written; see `Storage.assume`.

        Raises:
            ValueError: The API server has shown a newer version of one of them.
        """
        self._state.storage.assume(volumes, claims, pod_uid)

    def forget_storage(
        self,
        volumes: Iterable[PersistentVolume],
        claims: Iterable[PersistentVolumeClaim],
        pod_uid: str,
        written: Collection[str],
    ) -> None:
        """Undo what was assumed for a pod; see `Storage.forget`."""
        self._state.storage.forget(volumes, claims, pod_uid, written)

    def assumed_storage(self) -> dict[str, str]:
        """Assumed storage object -> UID of the pod that assumed it."""
        return self._storage.assumed()

    def update_device_object(self, obj: DeviceObject) -> DeviceObjectChange:
        """Add or update a claim, a device class or a slice.

        Raises:
            InvalidObject: A quantity cannot be parsed; the known version stays.
        """
        old, is_news = self._state.devices.put(obj)
        self._changed(is_news)
        return DeviceObjectChange(old, obj, ignored=not is_news)

    def remove_device_object(self, kind: type[DeviceObject], key: str) -> object | None:
        """Remove a claim, a device class or a slice; None if it is unknown."""
        old = self._state.devices.drop(kind, key)
        self._changed(old is not None)
        return old

    def begin_allocations(self, reserved: Iterable[ClaimAllocation], pod_uid: str) -> None:
        """Count devices as allocated that are to be written to claims for a pod."""
        for each in reserved:
            self._state.devices.begin(each, pod_uid)
        self._state.generation += 1

    def give_up_allocations(self, claim_uids: Iterable[str], pod_uid: str) -> None:
        """Stop to count devices as in flight for a pod, which gives them up."""
        for uid in claim_uids:
            self._state.devices.give_up(uid, pod_uid)
        self._state.generation += 1

    def end_allocations(self, claim_uids: Iterable[str]) -> None:
        """Stop to count devices as in flight: they were written to their claims."""
        for uid in claim_uids:
            self._state.devices.end(uid)
        self._state.generation += 1

    def assume_claim(self, claim: ResourceClaim) -> None:
        """Take a claim as the API server returned it; see `Devices.assume`."""
        self._state.devices.assume(claim)
        self._state.generation += 1

    def update_budget(self, budget: PodDisruptionBudget) -> None:
        """Add or update a pod disruption budget."""
        self._state.budgets.update(budget)
        self._state.generation += 1

    def remove_budget(self, namespace: str, name: str) -> bool:
        """Remove a pod disruption budget; returns whether it was known."""
        return self._changed(self._state.budgets.remove(namespace, name))

    def update_pod_group(self, known: KnownGroup) -> tuple[KnownGroup | None, bool]:
        """Add or update a pod group; returns the group before, and whether this one is news."""
        old, is_news = self._state.pod_groups.put(known)
        self._changed(is_news)
        return old, is_news

    def remove_pod_group(self, key: str, source: str) -> KnownGroup | None:
        """Remove a pod group; None if it is unknown."""
        old = self._state.pod_groups.drop(key, source)
        self._changed(old is not None)
        return old

    def see_pending_member(self, pod: PodInfo) -> None:
        """Count a pending pod in its group, if it has one."""
        self._state.pod_groups.see_pending(pod)

    def forget_pending_member(self, uid: str) -> None:
        """Do not count a pod as pending in its group any more; it is deleted, or not ours."""
        self._state.pod_groups.forget_pending(uid)

    @property
    def pod_groups(self) -> PodGroups:
        """The pod groups and their members, to read."""
        return self._state.pod_groups

    def update_custom_object(
        self, resource: str, found: JsonObject
    ) -> tuple[bool, JsonObject | None]:
        """Add or update an object; returns whether it is news, and the object before."""
        is_news, old = self._state.custom_objects.update(resource, found)
        self._changed(is_news)
        return is_news, old

    def remove_custom_object(self, resource: str, key: str) -> JsonObject | None:
        """Remove an object; returns it, or None if it was not known."""
        old = self._state.custom_objects.remove(resource, key)
        self._changed(old is not None)
        return old

    def remove_custom_resource(self, resource: str) -> list[JsonObject]:
        """Remove all objects of a resource; returns them."""
        gone = list(self._state.custom_objects.remove_all(resource))
        self._changed(bool(gone))
        return gone

    def note_eviction(self, pod: PodInfo) -> None:
        """A pod is about to be evicted; its budgets count it until they are updated."""
        self._state.budgets.note_eviction(pod)
        self._state.generation += 1

    def forget_eviction(self, pod: PodInfo) -> None:
        """A pod is not evicted after all."""
        self._state.budgets.forget_eviction(pod)
        self._state.generation += 1

    def pods(self) -> Iterator[PodInfo]:
        """All pods on nodes, including assumed ones."""
        return iter(self._state.placed)

    def counts(self) -> dict[str, int]:
        """Numbers of nodes, pods and assumed pods, for ``scheduler_scheduler_cache_size``."""
        return {
            "nodes": self._state.columns.num_nodes,
            "pods": len(self._state.placed),
            "assumed_pods": len(self._assumed),
        }

    def validate(self) -> None:
        """Recount every column and count from the objects and compare.

        Raises:
            InvariantViolation: A value differs; the exception names it and both values.
        """
        for _ in self.validation_steps():
            pass

    def validation_steps(self) -> Iterator[None]:
        """`validate` in short steps; the state may change between two of them.

        Raises:
            InvariantViolation: A value differs; the exception names it and both values.
        """
        stray = sorted(uid for uid in self._assumed if self._state.placed.get(uid) is None)
        if stray:
            raise InvariantViolation("assumed pods", "all on nodes", f"not on a node: {stray}")
        yield from self._state.pod_groups.validation_steps(self._state.placed, self._assumed)
        yield from state_validation_steps(self._state)

    def _update_terminal_pod(self, pod: PodInfo) -> PodChange:
        old = self.remove_pod(pod.uid)
        if old is None:
            return PodChange(None, None, NOTHING_CHANGED, ignored=True)
        return PodChange(old, None, ActionType.DELETE)

    def _update_pending_pod(self, old: PodInfo | None, pod: PodInfo) -> PodChange:
        if old is None:
            raise ValueError(f"Pod {pod.key} ({pod.uid}) has no node and is not assumed")
        if pod.uid not in self._assumed or is_older(pod.resource_version, old.resource_version):
            return PodChange(old, old, NOTHING_CHANGED, ignored=True)
        placed = replace(pod, node_name=old.node_name, reserved=old.reserved)
        self._replace(old, placed)
        return PodChange(old, placed, pod_update_actions(old, placed))

    def _add(self, pod: PodInfo) -> None:
        state = self._state
        row = state.columns.ensure_row(pod.node_name)
        state.columns.add_pod(row, pod.pod_class)
        state.pods.add(pod, row)
        if pod.volumes:
            state.volume_use.add_pod(pod, row)
        state.placed.put(pod, row)
        state.generation += 1

    def _remove(self, pod: PodInfo) -> None:
        state = self._state
        row = state.columns.ensure_row(pod.node_name)
        state.columns.remove_pod(row, pod.pod_class)
        state.pods.remove(pod, row)
        if pod.volumes:
            state.volume_use.remove_pod(pod, row)
        state.placed.remove(pod.uid, row)
        state.pod_groups.forget_placed(pod)
        state.columns.free_if_unused(row)
        state.generation += 1

    def _replace(self, old: PodInfo, pod: PodInfo) -> None:
        if old.node_name != pod.node_name:
            self._remove(old)
            self._add(pod)
            return
        state = self._state
        row = state.columns.ensure_row(pod.node_name)
        if old.group != pod.group:
            state.pod_groups.forget_placed(old)
            if pod.uid in self._assumed:
                state.pod_groups.see_assumed(pod)
        if old.pod_class is not pod.pod_class or old.terminating != pod.terminating:
            # Add before remove: what the two versions share is not dropped in between.
            state.pods.add(pod, row)
            state.pods.remove(old, row)
        if not old.pod_class.has_usage_of(pod.pod_class):
            state.columns.add_pod(row, pod.pod_class)
            state.columns.remove_pod(row, old.pod_class)
        elif old.reserved != pod.reserved:
            state.columns.usage_changes.record(row)
        # Claims depend on the namespace of the pod, ephemeral ones on its name too.
        if old.volumes != pod.volumes or old.key != pod.key:
            state.volume_use.add_pod(pod, row)
            state.volume_use.remove_pod(old, row)
        state.placed.put(pod, row)
        state.generation += 1

    def _changed(self, changed: bool) -> bool:
        if changed:
            self._state.generation += 1
        return changed
