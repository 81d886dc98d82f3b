"""The garbage collector: dependents are deleted or orphaned when their owner is deleted."""

from functools import partial
from typing import NamedTuple

import msgspec

from simcluster.controllers.reconciler import Key, Reconciler
from simcluster.controllers.shared import Shared
from simcluster.kinds.resources import Resource
from simcluster.store.store import Change, Stored
from simcluster.values import Json

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


class _Dependent(NamedTuple):
    resource: Resource
    namespace: str
    name: str


class _Owner(msgspec.Struct):
    uid: str


class _Metadata(msgspec.Struct):
    uid: str = ""
    ownerReferences: list[_Owner] | None = None  # noqa: N815 - as the API writes it
    deletionTimestamp: str | None = None  # noqa: N815 - as above


class _Brief(msgspec.Struct):
    """The part of an object that ownership needs, which is much cheaper to decode than all."""

    metadata: _Metadata


_decode_brief = msgspec.json.Decoder(_Brief).decode


class GarbageCollector(Reconciler):
    """Deletes or orphans dependents when their owner is deleted.

    Its keys are owners' uids (as names, without a namespace): a uid is enqueued when its owner is
    deleted or waits for one of the two finalizers, or when a dependent of an unknown owner appears.
    Objects that exist at the start keep unknown owners: these were not loaded with them.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._dependents: dict[str, dict[_Dependent, None]] = {}
        self._living: dict[str, _Dependent] = {}

    def follow(self) -> None:
        """Follow every kind but Events, which have no owners and no dependents."""
        catalog = self.registry.catalog
        followed = [found for found in catalog.collections() if found.stored_in != "events"]
        for resource in followed:
            for stored in self.store.collection(resource.stored_in):
                metadata = _decode_brief(stored.content).metadata
                owners = [reference.uid for reference in metadata.ownerReferences or ()]
                self._file(
                    _Dependent(resource, stored.namespace, stored.name), metadata.uid, owners
                )
                if metadata.deletionTimestamp:
                    self.enqueue(Key("", metadata.uid))
        for resource in followed:
            self._include(resource)
        catalog.follow_collections(self._include)

    def _include(self, resource: Resource) -> None:
        self.subscribe(resource, partial(self._see, resource))

    def _see(self, resource: Resource, change: Change) -> None:
        metadata = change.current.metadata
        if change.type == "DELETED":
            self._discard(resource, change.current)
            if metadata["uid"] in self._dependents:
                self.enqueue(Key("", metadata["uid"]))
            return
        if change.type == "ADDED":
            self._add(resource, change.current)
        elif change.previous is not None:
            before = change.previous.metadata.get("ownerReferences")
            if before != metadata.get("ownerReferences"):
                self._discard(resource, change.previous)
                self._add(resource, change.current)
        for reference in metadata.get("ownerReferences") or ():
            if change.type == "ADDED":
                self._enqueue_if_due(reference["uid"])
        if metadata.get("deletionTimestamp") and metadata.get("finalizers"):
            self.enqueue(Key("", metadata["uid"]))

    def _enqueue_if_due(self, uid: str) -> None:
        if uid not in self._living:
            self.enqueue(Key("", uid))

    def _add(self, resource: Resource, stored: Stored) -> None:
        metadata = stored.metadata
        owners = [reference["uid"] for reference in metadata.get("ownerReferences") or ()]
        me = _Dependent(resource, stored.namespace, stored.name)
        self._file(me, metadata["uid"], owners)

    def _file(self, me: _Dependent, uid: str, owner_uids: list[str]) -> None:
        self._living[uid] = me
        for owner_uid in owner_uids:
            self._dependents.setdefault(owner_uid, {})[me] = None

    def _discard(self, resource: Resource, stored: Stored) -> None:
        metadata = stored.metadata
        me = _Dependent(resource, stored.namespace, stored.name)
        self._living.pop(metadata["uid"], None)
        for reference in metadata.get("ownerReferences") or ():
            siblings = self._dependents.get(reference["uid"], {})
            siblings.pop(me, None)
            if not siblings:
                self._dependents.pop(reference["uid"], None)
                if reference["uid"] in self._living:
                    self.enqueue(Key("", reference["uid"]))

    def reconcile(self, key: Key) -> None:
        """Delete or orphan the dependents of the owner whose uid is the key's name."""
        uid = key.name
        place = self._living.get(uid)
        if place is None:
            for dependent in list(self._dependents.get(uid, ())):
                self._collect(dependent, "Background")
            return
        owner = self.find(place.resource, place.namespace, place.name)
        if owner is None or not owner.is_terminating:
            return
        finalizers = owner.finalizers
        if ORPHAN in finalizers:
            for dependent in list(self._dependents.get(uid, ())):
                self._release(dependent, uid)
            self._drop_finalizer(place, owner, ORPHAN)
        elif FOREGROUND in finalizers:
            self._delete_foreground(place, owner, uid)

    def _delete_foreground(self, place: _Dependent, owner: Stored, uid: str) -> None:
        for dependent in list(self._dependents.get(uid, ())):
            self._collect(dependent, "Foreground")
        if not any(self._blocks(dependent, uid) for dependent in self._dependents.get(uid, ())):
            self._drop_finalizer(place, owner, FOREGROUND)

    def _blocks(self, dependent: _Dependent, owner_uid: str) -> bool:
        """Whether an owner that is deleted in the foreground waits for this dependent.

        It would wait for itself for ever.
        """
        stored = self.find(dependent.resource, dependent.namespace, dependent.name)
        if stored is None or stored.uid == owner_uid:
            return False
        references = stored.owner_references
        return any(
            found["uid"] == owner_uid and found.get("blockOwnerDeletion") for found in references
        )

    def _collect(self, dependent: _Dependent, policy: str) -> None:
        """Delete a dependent if all of its other owners are gone, too."""
        resource, namespace, name = dependent
        stored = self.find(resource, namespace, name)
        if stored is None or stored.is_terminating:
            return
        references = stored.owner_references
        living = [found for found in references if self._lives_on(found["uid"])]
        if living:
            if policy == "Background":
                self._set_owners(dependent, stored, living)
            return
        uid = stored.uid
        if policy == "Foreground" and self._is_in_a_cycle(uid):
            unblocked = [{**found, "blockOwnerDeletion": False} for found in references]
            self._set_owners(dependent, stored, unblocked)
        self.delete(resource, stored, policy)

    def _is_in_a_cycle(self, uid: str) -> bool:
        """Whether a dependent of the object is itself being deleted in the foreground.

        upstream: ``attemptToDeleteItem``, which checks the same.
        """
        for resource, namespace, name in self._dependents.get(uid, ()):
            stored = self.find(resource, namespace, name)
            if stored and FOREGROUND in stored.finalizers:
                return True
        return False

    def _lives_on(self, uid: str) -> bool:
        place = self._living.get(uid)
        if place is None:
            return False
        owner = self.find(place.resource, place.namespace, place.name)
        return owner is not None and not owner.is_terminating

    def _release(self, dependent: _Dependent, owner_uid: str) -> None:
        resource, namespace, name = dependent
        stored = self.find(resource, namespace, name)
        if stored is not None:
            references = stored.owner_references
            kept = [reference for reference in references if reference["uid"] != owner_uid]
            self._set_owners(dependent, stored, kept)

    def _set_owners(self, dependent: _Dependent, stored: Stored, owners: list[Json]) -> None:
        self.write_list(dependent.resource, stored, "ownerReferences", owners)

    def _drop_finalizer(self, place: _Dependent, owner: Stored, finalizer: str) -> None:
        kept = [found for found in owner.metadata["finalizers"] if found != finalizer]
        self.write_list(place.resource, owner, "finalizers", kept)
