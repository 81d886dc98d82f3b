"""StatefulSets: pods with fixed names and claims of their own, created and updated in order."""

from typing import NamedTuple

from simcluster.controllers.ownership import (
    Adoption,
    PodGroup,
    available_in,
    count_available,
    is_finished,
    is_ready,
    is_selected,
    is_terminating,
)
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.controllers.workloads.controller_revisions import Revisions, revised_template
from simcluster.controllers.workloads.rollout import scaled_value
from simcluster.controllers.workloads.stateful_claims import StatefulClaims
from simcluster.controllers.workloads.stateful_pods import (
    Ordinals,
    ordinal_of,
    ordinals_of,
    revision_name,
    stateful_pod,
)
from simcluster.kinds.resources import PODS, STATEFUL_SETS
from simcluster.store.store import Change, Stored
from simcluster.values import Json


class _Rollout(NamedTuple):
    """The two revisions a StatefulSet's pods may have."""

    current: Stored
    update: Stored


class StatefulSetController(Reconciler):
    """Creates, updates and deletes the pods of StatefulSets by ordinal."""

    def follow(self) -> None:
        """Follow StatefulSets and their pods."""
        self._revisions = Revisions(self.shared, STATEFUL_SETS)
        self._claims = StatefulClaims(self.registry)
        self._adoption = Adoption(self.registry, STATEFUL_SETS, PODS)
        self.shared.pods.on_change(STATEFUL_SETS.kind, self._on_pod)
        self.shared.pods.on_orphan(self._on_orphan)
        self.subscribe(STATEFUL_SETS, lambda change: self.enqueue(key_of(change)))
        self.enqueue_all(STATEFUL_SETS)

    def _on_pod(self, change: Change, owner: Json) -> None:
        self.enqueue(Key(change.current.namespace, owner["name"]))

    def _on_orphan(self, pod: Stored) -> None:
        """Reconcile the set whose name a pod without a controller has."""
        owner_name, _, ordinal = pod.name.rpartition("-")
        if ordinal.isdigit() and self.find(STATEFUL_SETS, pod.namespace, owner_name):
            self.enqueue(Key(pod.namespace, owner_name))

    def reconcile(self, key: Key) -> None:
        """Do one step towards the wanted pods, then write the status."""
        stored = self.find(STATEFUL_SETS, *key)
        if stored is None or stored.obj["metadata"].get("deletionTimestamp"):
            return
        rollout = self._rollout(stored)
        self._adopt(stored)
        self._step(key, stored, rollout)
        self._report(key, rollout)

    def _rollout(self, stored: Stored) -> _Rollout:
        update = self._revisions.current(stored)
        name = stored.obj["status"].get("currentRevision", "")
        current = self._revisions.named(stored, name) if name else None
        return _Rollout(current or update, update)

    def _adopt(self, stored: Stored) -> None:
        selector = stored.obj["spec"].get("selector")
        for ordinal in ordinals_of(stored).wanted:
            pod = self.find(PODS, stored.namespace, f"{stored.name}-{ordinal}")
            if pod is not None and is_selected(selector, pod):
                self._adoption.adopt(stored, pod)

    def _step(self, key: Key, stored: Stored, rollout: _Rollout) -> None:
        ordinals = ordinals_of(stored)
        pods = _by_ordinal(self.shared.pods.of(stored), stored.name)
        is_ordered = stored.obj["spec"]["podManagementPolicy"] == "OrderedReady"
        self._claims.follow_policy(stored, pods, ordinals)
        for ordinal in ordinals.wanted:
            pod = pods.get(ordinal)
            if pod is not None and is_finished(pod) and not is_terminating(pod):
                self.delete(PODS, pod)
                pod = self.find(PODS, stored.namespace, pod.name)
            if pod is None:
                self._create(stored, ordinal, ordinals, rollout)
            if is_ordered and (pod is None or not self._is_available(key, stored, pod)):
                return
        condemned = sorted(set(pods) - set(ordinals.wanted), reverse=True)
        if not self._scale_down(pods, condemned, is_ordered):
            return
        if stored.obj["spec"]["updateStrategy"].get("type") != "OnDelete":
            self._update(key, stored, pods, rollout)

    def _create(self, stored: Stored, ordinal: int, ordinals: Ordinals, rollout: _Rollout) -> None:
        """Create a pod, of the old revision below the partition and during an update."""
        is_old = ordinal < max(ordinals.partition, ordinals.start + self._num_kept(stored, rollout))
        revision = rollout.current if is_old else rollout.update
        pod = stateful_pod(stored, ordinal, revised_template(revision), revision.name)
        self._claims.make(stored, pod["metadata"]["name"])
        self.registry.create(PODS, stored.namespace, pod)

    @staticmethod
    def _num_kept(stored: Stored, rollout: _Rollout) -> int:
        """How many of the lowest ordinals an unfinished update has not reached yet."""
        if rollout.current.name == rollout.update.name or ordinals_of(stored).partition:
            return 0
        return int(stored.obj["status"].get("currentReplicas", 0))

    def _is_available(self, key: Key, stored: Stored, pod: Stored) -> bool:
        min_ready_s = stored.obj["spec"].get("minReadySeconds") or 0
        wait_s = available_in(pod, min_ready_s, self.registry.clock.time_s())
        if wait_s is not None and wait_s > 0:
            self.enqueue_after(key, wait_s)
        return wait_s is not None and wait_s <= 0

    def _scale_down(self, pods: dict[int, Stored], condemned: list[int], is_ordered: bool) -> bool:
        """Delete from the highest ordinal; in order, one at a time. True when none is left."""
        for ordinal in condemned:
            if not is_terminating(pods[ordinal]):
                self.delete(PODS, pods[ordinal])
            if is_ordered:
                return False
        return not condemned

    def _update(self, key: Key, stored: Stored, pods: dict[int, Stored], rollout: _Rollout) -> None:
        """Delete old pods from the highest ordinal down to the partition, few at a time."""
        ordinals = ordinals_of(stored)
        budget = _max_unavailable(stored)
        for ordinal in sorted(ordinals.wanted, reverse=True):
            pod = pods.get(ordinal)
            if ordinal < max(ordinals.partition, ordinals.start):
                return
            is_old = pod is not None and revision_name(pod) != rollout.update.name
            if pod is not None and is_old and not is_terminating(pod):
                self.delete(PODS, pod)
            if is_old or pod is None or not self._is_available(key, stored, pod):
                budget -= 1
            if budget <= 0:
                return

    def _report(self, key: Key, rollout: _Rollout) -> None:
        stored = self.find(STATEFUL_SETS, *key)
        if stored is None:
            return
        wanted = set(ordinals_of(stored).wanted)
        pods = _by_ordinal(self.shared.pods.of(stored), stored.name)
        living = [pod for pod in pods.values() if not is_finished(pod)]
        staying = [pod for number, pod in pods.items() if number in wanted]
        updated = _count_of_revision(staying, rollout.update)
        current = rollout.current
        if updated == len(staying) == len(wanted) and all(map(is_ready, staying)):
            current = rollout.update
        now = self.registry.clock.time_s()
        min_ready_s = stored.obj["spec"].get("minReadySeconds") or 0
        counts = {
            "currentReplicas": _count_of_revision(staying, current),
            "updatedReplicas": updated,
            "readyReplicas": sum(is_ready(pod) for pod in living),
        }
        status: Json = {
            "observedGeneration": stored.obj["metadata"].get("generation", 1),
            "replicas": len(living),
            "availableReplicas": count_available(living, min_ready_s, now)[0],
            "currentRevision": current.name,
            "updateRevision": rollout.update.name,
            "collisionCount": stored.obj["status"].get("collisionCount", 0),
            **{name: count for name, count in counts.items() if count},
        }
        self.registry.change_status(STATEFUL_SETS, *key, lambda _obj: status)
        used = {revision_name(pod) for pod in living} | {current.name, rollout.update.name}
        self._revisions.forget_oldest(stored, used)


def _by_ordinal(group: PodGroup, owner_name: str) -> dict[int, Stored]:
    found = {ordinal_of(pod.name, owner_name): pod for pod in group.members.values()}
    return {ordinal: pod for ordinal, pod in found.items() if ordinal is not None}


def _count_of_revision(pods: list[Stored], revision: Stored) -> int:
    return sum(revision_name(pod) == revision.name and not is_terminating(pod) for pod in pods)


def _max_unavailable(stored: Stored) -> int:
    rolling = stored.obj["spec"]["updateStrategy"].get("rollingUpdate") or {}
    asked = rolling.get("maxUnavailable", 1)
    return max(1, scaled_value(asked, stored.obj["spec"]["replicas"], round_up=True))
