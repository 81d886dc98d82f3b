"""Who owns whom: owner references, an index over them, and pods made from a template."""

import copy
from collections.abc import Callable
from typing import Any

from scheduler.cluster.resources import Resource
from scheduler.cluster.store import Change, Store, Stored

Json = dict[str, Any]


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
        store: followed from now on.
        resource: whose objects are indexed.
        on_change: called with the controller's reference after each change of an owned object.
    """

    def __init__(
        self, store: Store, resource: Resource, on_change: Callable[[str, Json], None]
    ) -> None:
        self._by_owner: dict[str, dict[tuple[str, str], Stored]] = {}
        self._on_change = on_change
        for stored in store.collection(resource.stored_in):
            self._add(stored)

    def see(self, change: Change) -> None:
        """Take a change into the index."""
        reference = controller_reference(change.current.obj)
        before = controller_reference(change.previous.obj) if change.previous else None
        if before is not None and (reference is None or before["uid"] != reference["uid"]):
            self._discard(before["uid"], change.current)
            self._on_change(change.current.namespace, before)
        if reference is None:
            return
        if change.type == "DELETED":
            self._discard(reference["uid"], change.current)
        else:
            self._add(change.current)
        self._on_change(change.current.namespace, reference)

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


def pod_from_template(resource: Resource, owner: Stored) -> Json:
    """A pod that ``owner`` is to create."""
    template = copy.deepcopy(owner.obj["spec"]["template"])
    metadata = template.setdefault("metadata", {})
    metadata.pop("creationTimestamp", None)
    metadata["generateName"] = f"{owner.name}-"
    metadata["namespace"] = owner.namespace
    metadata["ownerReferences"] = [owner_reference(resource, owner)]
    return {"metadata": metadata, "spec": template["spec"]}


def is_active(pod: Stored) -> bool:
    """Neither finished nor being deleted."""
    return pod.obj["status"].get("phase") not in {"Succeeded", "Failed"} and not pod.obj[
        "metadata"
    ].get("deletionTimestamp")


def is_ready(pod: Stored) -> bool:
    """The pod's Ready condition is True."""
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in pod.obj["status"].get("conditions") or ()
    )


def set_condition(conditions: list[Json], condition: Json) -> list[Json]:
    """Conditions with one replaced by type; its transition time moves only with its status."""
    before = next((old for old in conditions if old["type"] == condition["type"]), None)
    if before is None:
        return [*conditions, condition]
    if before["status"] == condition["status"]:
        kept = {key: before[key] for key in ("lastTransitionTime",) if key in before}
        condition = {**condition, **kept}
        if before.get("reason") == condition.get("reason") and "lastUpdateTime" in before:
            condition["lastUpdateTime"] = before["lastUpdateTime"]
    return [condition if old is before else old for old in conditions]
