"""Adoption and release: the reference to a controller follows that controller's selector."""

from typing import Any

from simcluster.controllers.ownership import controller_reference, owner_reference
from simcluster.kinds.resources import Resource
from simcluster.store.registry import Registry, editable
from simcluster.store.selectors import match_label_selector
from simcluster.store.store import Stored

Json = dict[str, Any]


class Claims:
    """What one kind of owner takes in and lets go.

    Args:
        registry: where references are written.
        owner_kind: the owners.
        owned_kind: what they own.
    """

    def __init__(self, registry: Registry, owner_kind: Resource, owned_kind: Resource) -> None:
        self._registry = registry
        self._owner_kind = owner_kind
        self._owned_kind = owned_kind

    def adopt(self, owner: Stored, orphan: Stored) -> bool:
        """Make ``owner`` the controller of what nobody controls; False if that cannot be."""
        metadata = orphan.obj["metadata"]
        if metadata.get("deletionTimestamp") or owner.obj["metadata"].get("deletionTimestamp"):
            return False
        if controller_reference(orphan.obj) is not None:
            return False
        reference = owner_reference(self._owner_kind, owner)
        self._write(orphan, [*(metadata.get("ownerReferences") or ()), reference])
        return True

    def release(self, owner: Stored, owned: Stored) -> None:
        """Let go of an object that the owner's selector no longer selects."""
        uid = owner.obj["metadata"]["uid"]
        references = owned.obj["metadata"].get("ownerReferences") or ()
        self._write(owned, [found for found in references if found["uid"] != uid])

    def _write(self, stored: Stored, references: list[Json]) -> None:
        obj = editable(stored)
        obj["metadata"]["ownerReferences"] = references
        if not references:
            del obj["metadata"]["ownerReferences"]
        self._registry.replace(self._owned_kind, stored, obj)


def is_selected(selector: Json | None, stored: Stored) -> bool:
    """Whether an object's labels match a selector."""
    return match_label_selector(selector, stored.obj["metadata"].get("labels") or {})
