"""Who owns whom: owner references, indexes over them, and pods made from a template."""

import copy
from collections.abc import Callable
from typing import Any

from simcluster.kinds.resources import Resource
from simcluster.store.store import Change, Store, Stored

Json = dict[str, Any]
OnOwned = Callable[[str, Json], None]
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


class OwnedObjects:
    """Objects of one resource by the uid of their managing controller.

    Args:
        store: whose objects are indexed.
        resource: which of them.
    """

    def __init__(self, store: Store, resource: Resource) -> None:
        self._by_owner: dict[str, dict[tuple[str, str], Stored]] = {}
        self._listeners: dict[str, list[OnOwned]] = {}
        for stored in store.collection(resource.stored_in):
            self._add(stored)

    def on_change(self, kind: str, listener: OnOwned) -> None:
        """Call ``listener`` with namespace and reference after a change below such an owner."""
        self._listeners.setdefault(kind, []).append(listener)

    def see(self, change: Change) -> None:
        """Take a change into the index."""
        reference = controller_reference(change.current.obj)
        before = controller_reference(change.previous.obj) if change.previous else None
        if before is not None and (reference is None or before["uid"] != reference["uid"]):
            self._discard(before["uid"], change.current)
            self._tell(change.current.namespace, before)
        if reference is None:
            return
        if change.type == "DELETED":
            self._discard(reference["uid"], change.current)
        else:
            self._add(change.current)
        self._tell(change.current.namespace, reference)

    def _tell(self, namespace: str, reference: Json) -> None:
        for listener in self._listeners.get(reference["kind"], ()):
            listener(namespace, reference)

    def _add(self, stored: Stored) -> None:
        reference = controller_reference(stored.obj)
        if reference is not None:
            owned = self._by_owner.setdefault(reference["uid"], {})
            owned[stored.namespace, stored.name] = stored

    def _discard(self, owner_uid: str, stored: Stored) -> None:
        owned = self._by_owner.get(owner_uid, {})
        owned.pop((stored.namespace, stored.name), None)
        if not owned:
            self._by_owner.pop(owner_uid, None)

    def of(self, owner: Stored) -> list[Stored]:
        """The objects an owner manages, oldest first."""
        owned = self._by_owner.get(owner.obj["metadata"]["uid"], {})
        return list(owned.values())


class PodGroup:
    """The pods of one owner, sorted by what controllers ask for; counts cost nothing to read.

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


_NOBODY = PodGroup()


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
        """Call ``listener`` with each pod that nobody controls, when it changes."""
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
        return self._groups.get(uid, _NOBODY)

    def orphans(self, namespace: str) -> list[Stored]:
        """A namespace's pods that nobody controls."""
        return list(self._orphans.get(namespace, {}).values())


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
