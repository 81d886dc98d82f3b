"""Ownership: owner references, adoption, pods by owner, and the states of pods."""

import copy
from collections.abc import Callable, Iterable
from typing import Any

from simcluster.clock import parse_timestamp
from simcluster.kinds.resources import Resource
from simcluster.store.registry import Registry, editable
from simcluster.store.selectors import match_label_selector
from simcluster.store.store import Change, Stored
from simcluster.values import Json

OnOwnedPod = Callable[[Change, Json], None]

JOB_TRACKING = "batch.kubernetes.io/job-tracking"


def controller_reference(obj: Json) -> Json | None:
    """The owner reference of an object's managing controller."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((found for found in references if found.get("controller")), None)


def owner_reference(resource: Resource, owner: Stored) -> Json:
    """A reference that makes ``owner`` the managing controller."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.name,
        "uid": owner.obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


class PodGroup:
    """The pods of one owner, sorted by state, with counts that are kept up to date.

    Attributes:
        members: all of them, by name.
        active: those neither finished nor being deleted.
        tracked: those no longer active that a Job has not counted yet.
    """

    __slots__ = ("_ready", "_terminating", "active", "members", "tracked")

    def __init__(self) -> None:
        self.members: dict[str, Stored] = {}
        self.active: dict[str, Stored] = {}
        self.tracked: dict[str, Stored] = {}
        self._ready: set[str] = set()
        self._terminating: set[str] = set()

    @property
    def num_ready(self) -> int:
        """Active pods that are ready."""
        return len(self._ready)

    @property
    def num_terminating(self) -> int:
        """Pods that are being deleted and have not finished."""
        return len(self._terminating)

    def put(self, pod: Stored) -> None:
        """Add a pod or replace its earlier state."""
        name = pod.name
        self.discard(name)
        self.members[name] = pod
        if is_active(pod):
            self.active[name] = pod
            if is_ready(pod):
                self._ready.add(name)
            return
        if not is_finished(pod):
            self._terminating.add(name)
        if JOB_TRACKING in (pod.obj["metadata"].get("finalizers") or ()):
            self.tracked[name] = pod

    def discard(self, name: str) -> None:
        """Remove a pod, if it is there."""
        if self.members.pop(name, None) is not None:
            self.tracked.pop(name, None)
            self.active.pop(name, None)
            self._ready.discard(name)
            self._terminating.discard(name)


_NO_PODS = PodGroup()


class OwnedPods:
    """Pods by the uid of their managing controller, and those without one by namespace."""

    def __init__(self) -> None:
        self._groups: dict[str, PodGroup] = {}
        self._orphans: dict[str, dict[str, Stored]] = {}
        self._listeners: dict[str, list[OnOwnedPod]] = {}
        self._orphan_listeners: list[Callable[[Stored], None]] = []

    def add(self, pod: Stored) -> None:
        """Take in a pod that exists at the start."""
        self._add(pod, controller_reference(pod.obj))

    def on_change(self, kind: str, listener: OnOwnedPod) -> None:
        """Call ``listener`` with each change of a pod of such an owner, and the reference to it."""
        self._listeners.setdefault(kind, []).append(listener)

    def on_orphan(self, listener: Callable[[Stored], None]) -> None:
        """Call ``listener`` with each changed pod that has no controller."""
        self._orphan_listeners.append(listener)

    def see(self, change: Change) -> None:
        """Take a change into the index."""
        pod = change.current
        reference = controller_reference(pod.obj)
        before = controller_reference(change.previous.obj) if change.previous else None
        if before != reference and change.previous is not None:
            self._discard(pod, before)
            if before is not None:
                self._tell(change, before)
        if change.type == "DELETED":
            self._discard(pod, reference)
        else:
            self._add(pod, reference)
        if reference is not None:
            self._tell(change, reference)
        elif change.type != "DELETED":
            for listener in self._orphan_listeners:
                listener(pod)

    def _tell(self, change: Change, reference: Json) -> None:
        for listener in self._listeners.get(reference["kind"], ()):
            listener(change, reference)

    def _add(self, pod: Stored, reference: Json | None) -> None:
        if reference is None:
            self._orphans.setdefault(pod.namespace, {})[pod.name] = pod
        else:
            self._groups.setdefault(reference["uid"], PodGroup()).put(pod)

    def _discard(self, pod: Stored, reference: Json | None) -> None:
        if reference is None:
            self._orphans.get(pod.namespace, {}).pop(pod.name, None)
            return
        group = self._groups.get(reference["uid"])
        if group is not None:
            group.discard(pod.name)
            if not group.members:
                del self._groups[reference["uid"]]

    def of(self, owner: Stored) -> PodGroup:
        """The pods an owner manages."""
        return self.of_uid(owner.obj["metadata"]["uid"])

    def of_uid(self, uid: str) -> PodGroup:
        """The pods of the owner with this uid."""
        return self._groups.get(uid, _NO_PODS)

    def orphans(self, namespace: str) -> list[Stored]:
        """The pods of a namespace that have no controller."""
        return list(self._orphans.get(namespace, {}).values())


def with_list(stored: Stored, field: str, values: list[Any]) -> Json:
    """A copy of an object with another list in its metadata; without the field if it is empty."""
    obj = editable(stored)
    obj["metadata"][field] = values
    if not values:
        del obj["metadata"][field]
    return obj


class Adoption:
    """Adds and removes references to the owners of one kind.

    Args:
        registry: where references are written.
        owner_kind: the owners.
        owned_kind: the objects that they own.
    """

    def __init__(self, registry: Registry, owner_kind: Resource, owned_kind: Resource) -> None:
        self._registry = registry
        self._owner_kind = owner_kind
        self._owned_kind = owned_kind

    def adopt(self, owner: Stored, orphan: Stored) -> None:
        """Make ``owner`` the controller of an object without one, unless either is going."""
        if is_terminating(orphan) or is_terminating(owner) or controller_reference(orphan.obj):
            return
        references = orphan.obj["metadata"].get("ownerReferences") or ()
        self._write(orphan, [*references, owner_reference(self._owner_kind, owner)])

    def release(self, owner: Stored, owned: Stored) -> None:
        """Remove the reference from an object that the owner's selector no longer selects."""
        uid = owner.obj["metadata"]["uid"]
        references = owned.obj["metadata"].get("ownerReferences") or ()
        self._write(owned, [found for found in references if found["uid"] != uid])

    def _write(self, stored: Stored, references: list[Json]) -> None:
        obj = with_list(stored, "ownerReferences", references)
        self._registry.replace(self._owned_kind, stored, obj)


def is_selected(selector: Json | None, stored: Stored) -> bool:
    """Whether an object's labels match a selector."""
    return match_label_selector(selector, stored.labels)


def pod_from_template(resource: Resource, owner: Stored) -> Json:
    """A pod that ``owner`` is to create."""
    template = copy.deepcopy(owner.obj["spec"]["template"])
    metadata = template.setdefault("metadata", {})
    metadata.pop("creationTimestamp", None)
    metadata["generateName"] = f"{owner.name}-"
    metadata["namespace"] = owner.namespace
    metadata["ownerReferences"] = [owner_reference(resource, owner)]
    return {"metadata": metadata, "spec": template["spec"]}


def is_finished(pod: Stored) -> bool:
    """In phase Succeeded or Failed."""
    return pod.obj["status"].get("phase") in {"Succeeded", "Failed"}


def is_terminating(pod: Stored) -> bool:
    """Being deleted."""
    return bool(pod.obj["metadata"].get("deletionTimestamp"))


def is_active(pod: Stored) -> bool:
    """Neither finished nor being deleted."""
    return not is_finished(pod) and not is_terminating(pod)


def is_ready(pod: Stored) -> bool:
    """The pod's Ready condition is True."""
    return ready_since(pod) is not None


def ready_since(pod: Stored) -> str | None:
    """When the pod became ready; ``None`` if it is not."""
    for condition in pod.obj["status"].get("conditions") or ():
        if condition.get("type") == "Ready":
            is_true = condition.get("status") == "True"
            return (condition.get("lastTransitionTime") or "") if is_true else None
    return None


def set_condition(conditions: list[Json], condition: Json) -> list[Json]:
    """Conditions with one replaced by type; its transition time moves only with its status."""
    before = next((old for old in conditions if old["type"] == condition["type"]), None)
    if before is None:
        return [*conditions, condition]
    if before["status"] == condition["status"]:
        kept = {key: before[key] for key in ("lastTransitionTime",) if key in before}
        condition = {**condition, **kept}
    return [condition if old is before else old for old in conditions]


def disruption_target(pod: Json, reason: str, message: str, now: str) -> Json:
    """A pod's status with the condition that says why the pod is deleted."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    status: Json = pod["status"]
    return {**status, "conditions": set_condition(status.get("conditions") or [], condition)}


def available_in(pod: Stored, min_ready_s: float, now: float) -> float | None:
    """Seconds until a ready pod counts as available; ``None`` if it is not ready."""
    since = ready_since(pod)
    if since is None or is_terminating(pod):
        return None
    if not min_ready_s or not since:
        return 0.0
    return parse_timestamp(since) + min_ready_s - now


def count_available(
    pods: Iterable[Stored], min_ready_s: float, now: float
) -> tuple[int, float | None]:
    """How many pods are available, and in how many seconds the next one will be."""
    waits = [available_in(pod, min_ready_s, now) for pod in pods]
    available = sum(wait_s is not None and wait_s <= 0 for wait_s in waits)
    return available, min((wait_s for wait_s in waits if wait_s and wait_s > 0), default=None)
