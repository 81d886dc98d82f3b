"""Deployments: one ReplicaSet per pod template, and rollouts from one to the next."""

import copy

from simcluster.controllers.indexes import SelectorIndex
from simcluster.controllers.ownership import (
    Adoption,
    controller_reference,
    is_selected,
    owner_reference,
)
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.controllers.workloads.deployment_status import (
    TIMED_OUT,
    counted,
    deployment_status,
    is_complete,
    progress_left_s,
    progressing_of,
)
from simcluster.controllers.workloads.rollout import (
    SetSize,
    max_replicas,
    plan_rollout,
    plan_scaling,
)
from simcluster.controllers.workloads.template_revision import (
    DESIRED_REPLICAS,
    HASH_LABEL,
    MAX_REPLICAS,
    REVISION,
    content_hash,
    revision_of,
    same_template,
    set_annotations,
)
from simcluster.kinds.resources import DEPLOYMENTS, REPLICA_SETS
from simcluster.store.registry import editable
from simcluster.store.store import Change, Stored
from simcluster.values import Json

_SOURCE = "deployment-controller"


class DeploymentController(Reconciler):
    """Creates, scales and deletes the ReplicaSets of Deployments.

    A Deployment whose status counts pods but that has no ReplicaSet when the controller starts was
    loaded without them; it is left alone until its spec changes.
    """

    def follow(self) -> None:
        """Follow Deployments, the ReplicaSets that they own, and those that they may adopt."""
        self._sets = self.shared.owned(REPLICA_SETS)
        self._sets.on_change(
            DEPLOYMENTS.kind, lambda namespace, owner: self.enqueue(Key(namespace, owner["name"]))
        )
        self.shared.pods.on_change(REPLICA_SETS.kind, self._on_pod)
        self._adoption = Adoption(self.registry, DEPLOYMENTS, REPLICA_SETS)
        self._selectors = SelectorIndex()
        self._left_alone: dict[str, int] = {}
        for stored in self.store.collection(DEPLOYMENTS.stored_in):
            self._selectors.put(stored.namespace, stored.name, stored.obj["spec"].get("selector"))
            if stored.obj["status"].get("replicas") and not self._sets.owned_by(stored):
                uid = stored.obj["metadata"]["uid"]
                self._left_alone[uid] = stored.obj["metadata"].get("generation", 1)
        self.subscribe(REPLICA_SETS, self._on_set)
        self.subscribe(DEPLOYMENTS, self._on_deployment)
        self.enqueue_all(DEPLOYMENTS)

    def _on_deployment(self, change: Change) -> None:
        key = key_of(change)
        if change.type == "DELETED":
            self._selectors.discard(*key)
            self.forget_timer(key)
        elif change.type == "ADDED":
            self._selectors.put(*key, change.current.obj["spec"].get("selector"))
        self.enqueue(key)

    def _on_set(self, change: Change) -> None:
        stored = change.current
        if change.type == "DELETED" or controller_reference(stored.obj) is not None:
            return
        for name in self._selectors.selecting(stored):
            self.enqueue(Key(stored.namespace, name))

    def _on_pod(self, change: Change, owner: Json) -> None:
        """Continue a Deployment that recreates when an old pod is gone."""
        if change.type != "DELETED":
            return
        namespace = change.current.namespace
        owning_set = self.find(REPLICA_SETS, namespace, owner["name"])
        reference = controller_reference(owning_set.obj) if owning_set is not None else None
        if reference is None or reference["kind"] != DEPLOYMENTS.kind:
            return
        deployment = self.find(DEPLOYMENTS, namespace, reference["name"])
        if deployment is not None and deployment.obj["spec"]["strategy"]["type"] == "Recreate":
            self.enqueue(Key(namespace, deployment.name))

    def reconcile(self, key: Key) -> None:
        """Do one step of the rollout, then write the status."""
        deployment = self.find(DEPLOYMENTS, *key)
        if deployment is None or deployment.obj["metadata"].get("deletionTimestamp"):
            return
        uid = deployment.obj["metadata"]["uid"]
        if self._left_alone.get(uid) == deployment.obj["metadata"].get("generation", 1):
            return
        self._adopt_sets(deployment)
        current, older = self._split(deployment)
        if self._is_being_scaled(deployment, current, older):
            self._scale(deployment, current, older)
        elif not deployment.obj["spec"].get("paused"):
            if current is None:
                current = self._create_set(deployment, older)
            self._step(deployment, current, older)
            self._forget_oldest(deployment, older)
        self._report(key)

    def _adopt_sets(self, deployment: Stored) -> None:
        """Adopt ReplicaSets without a controller, if the Deployment has none."""
        if self._sets.owned_by(deployment):
            return
        selector = deployment.obj["spec"].get("selector")
        for stored in self.store.collection(REPLICA_SETS.stored_in).items(deployment.namespace):
            if controller_reference(stored.obj) is None and is_selected(selector, stored):
                self._adoption.adopt(deployment, stored)

    def _split(self, deployment: Stored) -> tuple[Stored | None, list[Stored]]:
        """The ReplicaSet of the current template, and the others, oldest first."""
        template = deployment.obj["spec"]["template"]
        current, older = None, []
        for stored in sorted(self._sets.owned_by(deployment), key=revision_of):
            if current is None and same_template(stored.obj["spec"]["template"], template):
                current = stored
            else:
                older.append(stored)
        return current, older

    def _create_set(self, deployment: Stored, older: list[Stored]) -> Stored:
        spec = deployment.obj["spec"]
        digest = self._free_hash(deployment)
        template, selector = copy.deepcopy(spec["template"]), copy.deepcopy(spec["selector"])
        template["metadata"].setdefault("labels", {})[HASH_LABEL] = digest
        selector.setdefault("matchLabels", {})[HASH_LABEL] = digest
        revision = max(map(revision_of, older), default=0) + 1
        sizes = (spec["replicas"], max_replicas(spec))
        replica_set: Json = {
            "metadata": {
                "name": f"{deployment.name}-{digest}",
                "labels": dict(template["metadata"]["labels"]),
                "annotations": set_annotations({}, deployment, revision, sizes),
                "ownerReferences": [owner_reference(DEPLOYMENTS, deployment)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        if spec.get("minReadySeconds"):
            replica_set["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        return self.registry.create(REPLICA_SETS, deployment.namespace, replica_set)

    def _free_hash(self, deployment: Stored) -> str:
        """A hash of the template under which no ReplicaSet exists yet."""
        salt = 0
        while True:
            digest = content_hash(deployment.obj["spec"]["template"], salt)
            name = f"{deployment.name}-{digest}"
            if self.find(REPLICA_SETS, deployment.namespace, name) is None:
                return digest
            salt += 1

    def _is_being_scaled(
        self, deployment: Stored, current: Stored | None, older: list[Stored]
    ) -> bool:
        """Whether an active set has the size for other replicas, or the rollout is paused."""
        spec = deployment.obj["spec"]
        sets = [*older, current] if current is not None else older
        active = [found for found in sets if found.obj["spec"]["replicas"]]
        if spec.get("paused"):
            return bool(active)
        wanted = str(spec["replicas"])
        noted = (_annotation(found, DESIRED_REPLICAS) for found in active)
        return any(found is not None and found != wanted for found in noted)

    def _scale(self, deployment: Stored, current: Stored | None, older: list[Stored]) -> None:
        """Adapt the sizes of the sets to the Deployment's without a step of the rollout."""
        spec = deployment.obj["spec"]
        sets = [*older, current] if current is not None else older
        active = [found for found in sets if found.obj["spec"]["replicas"]]
        if len(active) <= 1:
            chosen = active or ([current] if current is not None else sets[-1:])
            for stored in chosen:
                self._resize(deployment, stored, spec["replicas"])
            return
        if spec["strategy"]["type"] == "Recreate":
            return
        active.sort(key=lambda found: -found.obj["spec"]["replicas"])
        sizes = [found.obj["spec"]["replicas"] for found in active]
        noted = next((_annotation(found, MAX_REPLICAS) for found in active), None)
        before = int(noted) if noted else sum(sizes)
        for stored, replicas in zip(active, plan_scaling(spec, sizes, before), strict=True):
            self._resize(deployment, stored, replicas)

    def _resize(self, deployment: Stored, stored: Stored, replicas: int) -> None:
        spec = deployment.obj["spec"]
        obj = editable(stored)
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations[DESIRED_REPLICAS] = str(spec["replicas"])
        annotations[MAX_REPLICAS] = str(max_replicas(spec))
        before = obj["spec"]["replicas"]
        obj["spec"]["replicas"] = replicas
        self.registry.replace(REPLICA_SETS, stored, obj)
        if before != replicas:
            way = "up" if replicas > before else "down"
            why = f"Scaled {way} replica set {stored.name} from {before} to {replicas}"
            recorder = self.shared.recorder
            recorder.normal(_SOURCE, DEPLOYMENTS, deployment, "ScalingReplicaSet", why)

    def _step(self, deployment: Stored, current: Stored, older: list[Stored]) -> None:
        spec = deployment.obj["spec"]
        running = sum(len(self.shared.pods.of(old).members) for old in older)
        plan = plan_rollout(spec, _size(current), [_size(old) for old in older])
        if spec["strategy"]["type"] == "Recreate" and running:
            plan = plan._replace(current=current.obj["spec"]["replicas"])
        for stored, replicas in zip([current, *older], [plan.current, *plan.older], strict=True):
            if stored.obj["spec"]["replicas"] != replicas:
                self._resize(deployment, stored, replicas)
        self._note_revision(deployment, current, older)

    def _note_revision(self, deployment: Stored, current: Stored, older: list[Stored]) -> None:
        """Number the current set as the newest revision, also if its template is an older one."""
        spec = deployment.obj["spec"]
        revision = max(revision_of(current), max(map(revision_of, older), default=0) + 1)
        fresh = self.find(REPLICA_SETS, current.namespace, current.name)
        if fresh is not None:
            before = fresh.obj["metadata"].get("annotations") or {}
            sizes = (spec["replicas"], max_replicas(spec))
            annotations = set_annotations(before, deployment, revision, sizes)
            if annotations != before:
                obj = editable(fresh)
                obj["metadata"]["annotations"] = annotations
                self.registry.replace(REPLICA_SETS, fresh, obj)
        newest = self.find(DEPLOYMENTS, deployment.namespace, deployment.name)
        if newest is not None and _annotation(newest, REVISION) != str(revision):
            obj = editable(newest)
            obj["metadata"].setdefault("annotations", {})[REVISION] = str(revision)
            self.registry.replace(DEPLOYMENTS, newest, obj)

    def _forget_oldest(self, deployment: Stored, older: list[Stored]) -> None:
        """Delete old ReplicaSets over ``revisionHistoryLimit``, once the rollout is complete."""
        if not is_complete(deployment.obj["spec"], deployment.obj["status"]):
            return
        empty = [
            old for old in older if not old.obj["spec"]["replicas"] and not counted(old, "replicas")
        ]
        limit = deployment.obj["spec"]["revisionHistoryLimit"]
        for old in empty[: max(0, len(older) - limit)]:
            self.delete(REPLICA_SETS, old, "Background")

    def _report(self, key: Key) -> None:
        deployment = self.find(DEPLOYMENTS, *key)
        if deployment is None:
            return
        current, older = self._split(deployment)
        clock = self.registry.clock
        status = deployment_status(deployment, current, older, clock)
        self.registry.change_status(DEPLOYMENTS, *key, lambda _obj: status)
        reported = self.find(DEPLOYMENTS, *key)
        if reported is None or is_complete(reported.obj["spec"], status):
            self.forget_timer(key)
            return
        progressing = progressing_of(reported)
        if progressing is not None and progressing["reason"] != TIMED_OUT:
            self.enqueue_after(key, max(1.0, progress_left_s(reported, clock)))


def _annotation(stored: Stored, name: str) -> str | None:
    found: str | None = (stored.obj["metadata"].get("annotations") or {}).get(name)
    return found


def _size(stored: Stored) -> SetSize:
    return SetSize(stored.obj["spec"]["replicas"], counted(stored, "availableReplicas"))
