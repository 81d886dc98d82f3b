"""Deployments: one ReplicaSet per pod template, and the move from one to the next."""

import copy
import hashlib
from typing import Any

import msgspec

from scheduler.cluster.controllers.ownership import (
    OwnedObjects,
    owner_reference,
    set_condition,
)
from scheduler.cluster.controllers.reconciler import Key, Reconciler, key_of
from scheduler.cluster.controllers.rollout import SetSize, plan_rollout, scaled_value
from scheduler.cluster.deletion import DeleteOptions
from scheduler.cluster.registry import editable
from scheduler.cluster.resources import DEPLOYMENTS, REPLICA_SETS
from scheduler.cluster.store import Stored

Json = dict[str, Any]

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"


class DeploymentController(Reconciler):
    """Makes, scales and retires the ReplicaSets of Deployments."""

    def follow(self) -> None:
        """Follow Deployments and the ReplicaSets they own."""
        self._sets = OwnedObjects(self.store, REPLICA_SETS, self._on_set)
        self.subscribe(REPLICA_SETS, self._sets.see)
        self.subscribe(DEPLOYMENTS, lambda change: self.enqueue(key_of(change)))
        self.enqueue_all(DEPLOYMENTS)

    def _on_set(self, namespace: str, owner: Json) -> None:
        if owner["kind"] == DEPLOYMENTS.kind:
            self.enqueue(Key(namespace, owner["name"]))

    def reconcile(self, key: Key) -> None:
        """One step of the rollout, then report."""
        deployment = self.store.get(DEPLOYMENTS.stored_in, *key)
        if deployment is None or deployment.obj["metadata"].get("deletionTimestamp"):
            return
        current, older = self._split(deployment)
        if not deployment.obj["spec"].get("paused"):
            if current is None:
                current = self._create_set(deployment, older)
            self._step(deployment, current, older)
            self._forget_oldest(deployment, older)
        self._report(deployment)

    def _split(self, deployment: Stored) -> tuple[Stored | None, list[Stored]]:
        """The ReplicaSet of the current template, and the others, oldest first."""
        wanted = template_hash(deployment.obj["spec"]["template"])
        current, older = None, []
        for stored in self._sets.of(deployment):
            if (stored.obj["metadata"].get("labels") or {}).get(HASH_LABEL) == wanted:
                current = stored
            else:
                older.append(stored)
        return current, sorted(older, key=_revision)

    def _create_set(self, deployment: Stored, older: list[Stored]) -> Stored:
        spec = deployment.obj["spec"]
        digest = template_hash(spec["template"])
        template, selector = copy.deepcopy(spec["template"]), copy.deepcopy(spec["selector"])
        template["metadata"].setdefault("labels", {})[HASH_LABEL] = digest
        selector.setdefault("matchLabels", {})[HASH_LABEL] = digest
        revision = str(max(map(_revision, older), default=0) + 1)
        replica_set = {
            "metadata": {
                "name": f"{deployment.name}-{digest}",
                "labels": dict(template["metadata"]["labels"]),
                "annotations": {REVISION: revision},
                "ownerReferences": [owner_reference(DEPLOYMENTS, deployment)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        return self.registry.create(REPLICA_SETS, deployment.namespace, replica_set)

    def _step(self, deployment: Stored, current: Stored, older: list[Stored]) -> None:
        plan = plan_rollout(deployment.obj["spec"], _size(current), [_size(old) for old in older])
        for stored, replicas in zip([current, *older], [plan.current, *plan.older], strict=True):
            if stored.obj["spec"]["replicas"] != replicas:
                obj = editable(stored)
                obj["spec"]["replicas"] = replicas
                self.registry.replace(REPLICA_SETS, stored, obj)
        self._note_revision(deployment, current, older)

    def _note_revision(self, deployment: Stored, current: Stored, older: list[Stored]) -> None:
        """A template that came back is the newest revision again."""
        revision = max(_revision(current), max(map(_revision, older), default=0) + 1)
        for resource, stored in ((REPLICA_SETS, current), (DEPLOYMENTS, deployment)):
            fresh = self.store.get(resource.stored_in, stored.namespace, stored.name)
            if fresh is not None and _revision(fresh) != revision:
                obj = editable(fresh)
                obj["metadata"].setdefault("annotations", {})[REVISION] = str(revision)
                self.registry.replace(resource, fresh, obj)

    def _forget_oldest(self, deployment: Stored, older: list[Stored]) -> None:
        empty = [
            old
            for old in older
            if not old.obj["spec"]["replicas"] and not old.obj["status"].get("replicas")
        ]
        limit = deployment.obj["spec"]["revisionHistoryLimit"]
        for old in empty[: max(0, len(empty) - limit)]:
            options = DeleteOptions(propagation_policy="Background")
            self.registry.delete(REPLICA_SETS, old.namespace, old.name, options)

    def _report(self, deployment: Stored) -> None:
        current, older = self._split(deployment)
        sets = [*older, current] if current is not None else older
        counts = {
            "replicas": sum(_counted(found, "replicas") for found in sets),
            "updatedReplicas": _counted(current, "replicas") if current is not None else 0,
            "readyReplicas": sum(_counted(found, "readyReplicas") for found in sets),
            "availableReplicas": sum(_counted(found, "availableReplicas") for found in sets),
        }
        desired = deployment.obj["spec"]["replicas"]
        counts["unavailableReplicas"] = max(0, desired - counts["availableReplicas"])
        status: Json = {name: count for name, count in counts.items() if count}
        status["observedGeneration"] = deployment.obj["metadata"].get("generation", 1)
        status["conditions"] = self._conditions(deployment, counts)
        self.registry.change_status(
            DEPLOYMENTS, deployment.namespace, deployment.name, lambda _obj: status
        )

    def _conditions(self, deployment: Stored, counts: dict[str, int]) -> list[Json]:
        spec, now = deployment.obj["spec"], self.registry.clock.now()
        desired = spec["replicas"]
        fresh = self.store.get(DEPLOYMENTS.stored_in, deployment.namespace, deployment.name)
        conditions = (fresh or deployment).obj["status"].get("conditions") or []
        is_available = counts["availableReplicas"] >= desired - plan_slack(spec)
        is_done = counts["updatedReplicas"] == counts["availableReplicas"] == desired
        is_done = is_done and counts["replicas"] == desired
        times = {"lastUpdateTime": now, "lastTransitionTime": now}
        available = {
            "type": "Available",
            "status": "True" if is_available else "False",
            "reason": "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable",
            "message": f"Deployment {'has' if is_available else 'does not have'} minimum "
            "availability.",
            **times,
        }
        progressing = {
            "type": "Progressing",
            "status": "True",
            "reason": "NewReplicaSetAvailable" if is_done else "ReplicaSetUpdated",
            "message": "the ReplicaSet has successfully progressed."
            if is_done
            else "the ReplicaSet is progressing.",
            **times,
        }
        return set_condition(set_condition(conditions, available), progressing)


def plan_slack(spec: Json) -> int:
    """How many replicas a Deployment may lack and still count as available."""
    if spec["strategy"]["type"] == "Recreate":
        return 0
    bound = (spec["strategy"].get("rollingUpdate") or {}).get("maxUnavailable", "25%")
    return min(scaled_value(bound, spec["replicas"], round_up=False), int(spec["replicas"]))


def template_hash(template: Json) -> str:
    """Ten characters that change with the pod template."""
    digest = hashlib.blake2b(
        msgspec.json.encode(template, order="sorted"), digest_size=5
    ).hexdigest()
    return digest.translate(str.maketrans("0123456789aeiou", "bcdfghjklmnpqrs"))


def _revision(stored: Stored) -> int:
    return int((stored.obj["metadata"].get("annotations") or {}).get(REVISION, "0"))


def _counted(stored: Stored, key: str) -> int:
    return int(stored.obj["status"].get(key, 0))


def _size(stored: Stored) -> SetSize:
    return SetSize(stored.obj["spec"]["replicas"], _counted(stored, "availableReplicas"))
