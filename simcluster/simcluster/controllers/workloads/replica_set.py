"""ReplicaSets and ReplicationControllers: the wanted number of active pods."""

from simcluster.apiserver.errors import ApiError
from simcluster.controllers.indexes import SelectorIndex
from simcluster.controllers.ownership import (
    Adoption,
    PodGroup,
    count_available,
    is_active,
    is_selected,
    pod_from_template,
    set_condition,
)
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.controllers.workloads.deletion_order import in_deletion_order
from simcluster.kinds.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Resource
from simcluster.store.store import Change, Stored
from simcluster.values import Json

BURST = 500
FAILED_CREATE_RETRY_S = 1.0
_FAILURE = "ReplicaFailure"


class ReplicaSetController(Reconciler):
    """Creates and deletes the pods of ReplicaSets and counts them in their status.

    The cost of one pod's change does not grow with the number of replicas: the index of owned pods
    keeps the counts.
    """

    resource: Resource = REPLICA_SETS

    def follow(self) -> None:
        """Follow ReplicaSets, the pods they own, and pods they might adopt."""
        self._selectors = SelectorIndex()
        self._adoption = Adoption(self.registry, self.resource, PODS)
        self._to_release: dict[Key, dict[str, None]] = {}
        self._to_adopt: dict[Key, dict[str, None]] = {}
        self.shared.pods.on_change(self.resource.kind, self._on_pod)
        self.shared.pods.on_orphan(self._on_orphan)
        for stored in self.store.collection(self.resource.stored_in):
            self._index(stored)
        self.subscribe(self.resource, self._on_set)
        self.enqueue_all(self.resource)

    def _selector(self, stored: Stored) -> Json | None:
        selector: Json | None = stored.spec.get("selector")
        return selector

    def _index(self, stored: Stored) -> None:
        selector = self._selector(stored)
        self._selectors.put(stored.namespace, stored.name, selector)
        for pod in self.shared.pods.orphans(stored.namespace):
            if is_selected(selector, pod):
                self._note(self._to_adopt, Key(stored.namespace, stored.name), pod)

    @staticmethod
    def _note(book: dict[Key, dict[str, None]], key: Key, pod: Stored) -> None:
        book.setdefault(key, {})[pod.name] = None

    def _on_set(self, change: Change) -> None:
        key = key_of(change)
        if change.type == "DELETED":
            self._selectors.discard(*key)
            self.forget_timer(key)
        elif change.type == "ADDED":
            self._index(change.current)
        self.enqueue(key)

    def _on_pod(self, change: Change, owner: Json) -> None:
        key = Key(change.current.namespace, owner["name"])
        before = change.previous
        if before is not None and change.current.labels != before.labels:
            self._note(self._to_release, key, change.current)
        self.enqueue(key)

    def _on_orphan(self, pod: Stored) -> None:
        for name in self._selectors.selecting(pod) if pod.labels else ():
            key = Key(pod.namespace, name)
            self._note(self._to_adopt, key, pod)
            self.enqueue(key)

    def reconcile(self, key: Key) -> None:
        """Create missing pods or delete surplus ones, then write the status."""
        stored = self.find(self.resource, *key)
        if stored is None:
            return
        failure = None
        if not stored.is_terminating:
            self._adopt_and_release(key, stored)
            failure = self._adjust(key, stored)
        self._report(key, stored, failure)

    def _adopt_and_release(self, key: Key, stored: Stored) -> None:
        """Release pods that are no longer selected, adopt orphans that are."""
        selector = self._selector(stored)
        uid = stored.uid
        for name in self._to_release.pop(key, ()):
            pod = self.shared.pods.of_uid(uid).members.get(name)
            if pod is not None and not is_selected(selector, pod):
                self._adoption.release(stored, pod)
        for name in self._to_adopt.pop(key, ()):
            pod = self.find(PODS, key.namespace, name)
            if pod is not None and is_active(pod) and is_selected(selector, pod):
                self._adoption.adopt(stored, pod)

    def _adjust(self, key: Key, stored: Stored) -> ApiError | None:
        active = self.shared.pods.of(stored).active
        missing = stored.spec["replicas"] - len(active)
        try:
            for _ in range(min(missing, BURST)):
                pod = pod_from_template(self.resource, stored)
                self.registry.create(PODS, stored.namespace, pod)
        except ApiError as error:
            self.enqueue_after(key, FAILED_CREATE_RETRY_S)
            return error
        if missing < 0:
            for surplus in in_deletion_order(active.values())[:-missing]:
                self.delete(PODS, surplus)
        if missing > BURST:
            self.enqueue(key)
        return None

    def _report(self, key: Key, stored: Stored, failure: ApiError | None) -> None:
        group = self.shared.pods.of(stored)
        available = self._num_available(key, stored, group)
        status: Json = {
            "replicas": len(group.active),
            "observedGeneration": stored.metadata.get("generation", 1),
        }
        counts = {
            "fullyLabeledReplicas": len(group.active),
            "readyReplicas": group.num_ready,
            "availableReplicas": available,
        }
        status |= {name: count for name, count in counts.items() if count}
        conditions = self._conditions(stored, failure)
        if conditions:
            status["conditions"] = conditions
        self.registry.change_status(
            self.resource, stored.namespace, stored.name, lambda _obj: status
        )

    def _num_available(self, key: Key, stored: Stored, group: PodGroup) -> int:
        """Pods that have been ready for ``minReadySeconds``."""
        min_ready_s = stored.spec.get("minReadySeconds") or 0
        if not min_ready_s:
            return group.num_ready
        available, wait_s = count_available(
            group.active.values(), min_ready_s, self.registry.clock.time_s()
        )
        if wait_s is not None:
            self.enqueue_after(key, wait_s)
        return available

    def _conditions(self, stored: Stored, failure: ApiError | None) -> list[Json]:
        before = stored.status.get("conditions") or []
        if failure is None:
            return [found for found in before if found["type"] != _FAILURE]
        if any(found["type"] == _FAILURE for found in before):
            # The message names another pod each time; writing it would bring the key back at once.
            return before
        condition = {
            "type": _FAILURE,
            "status": "True",
            "reason": "FailedCreate",
            "message": failure.message,
            "lastTransitionTime": self.registry.clock.now(),
        }
        return set_condition(before, condition)


class ReplicationControllerController(ReplicaSetController):
    """ReplicationControllers, which select by plain labels."""

    resource = REPLICATION_CONTROLLERS

    def _selector(self, stored: Stored) -> Json | None:
        labels = stored.spec.get("selector")
        return {"matchLabels": labels} if labels else None
