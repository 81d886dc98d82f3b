"""Create, read, update and delete objects by the API server's rules, whoever asks.

HTTP handlers, the kubelet stand-in and the controllers all write through here, so that an
in-process write is checked, numbered and watched exactly like one over HTTP.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from simcluster.apiserver import errors
from simcluster.clock import Clock
from simcluster.kinds.catalog import Catalog
from simcluster.kinds.defaults.pods import set_pod_defaults
from simcluster.kinds.resources import NAMESPACES, Resource
from simcluster.kinds.rules import rules_of
from simcluster.kinds.subresources.pod_parts import ephemeral_containers, resized, validate_part
from simcluster.patch.apply import Recorder
from simcluster.store.deletion import DeleteOptions, DeletionPlan, plan_deletion
from simcluster.store.object_meta import carry_over, check_addressed, fill_on_create, take_owners
from simcluster.store.owners import Owners
from simcluster.store.store import Store, Stored
from simcluster.validation.metadata import validate_metadata, validate_metadata_update

Json = dict[str, Any]
Transform = Callable[[Json], Json]

Replace = Callable[..., Stored]

WHOLE_OBJECT_SUBRESOURCES = frozenset(("status", "approval", "ephemeralcontainers", "resize"))
"""Those that are read and written as the object itself, and change a part of it."""
_KEPT_BY_STATUS = ("ownerReferences", "finalizers")
_METADATA = frozenset(("metadata",))
_UNCOUNTED = frozenset(("metadata", "status"))


class Registry:
    """The objects of the cluster.

    Args:
        store: where they are kept.
        clock: for creation and deletion timestamps.
        taint_new_nodes: give nodes that are created the not-ready taint, as the API server's
            admission does.

    Attributes:
        catalog: which resources there are.
    """

    def __init__(self, store: Store, clock: Clock, *, taint_new_nodes: bool = True) -> None:
        self.store = store
        self.clock = clock
        self.catalog = Catalog()
        self._taint_new_nodes = taint_new_nodes

    def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        """The current revision of an object.

        Raises:
            ApiError: 404.
        """
        stored = self.store.get(resource.stored_in, namespace, name)
        if stored is None:
            raise errors.not_found(resource, name)
        return stored

    def create(
        self,
        resource: Resource,
        namespace: str,
        obj: Json,
        *,
        dry_run: bool = False,
        recorder: Recorder | None = None,
    ) -> Stored:
        """Admit, complete, validate and store a new object; ``obj`` becomes the registry's.

        Raises:
            ApiError: 403, 404, 409, 422 or 500, as the API server refuses.
        """
        check_addressed(resource, obj, namespace)
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        fill_on_create(resource, obj, namespace, self.clock)
        name = obj["metadata"].get("name", "")
        if resource.namespaced:
            self._check_namespace(resource, namespace, name)
        owners = self._complete(resource, obj, recorder)
        if self.store.get(resource.stored_in, namespace, name) is not None:
            raise errors.already_exists(resource, name)
        if resource.has_status and resource.stored_in not in {"pods", "nodes", "namespaces"}:
            self._reset_status(resource, obj)
        if dry_run:
            return Stored(obj, 0, owners=owners)
        return self.store.put(resource.stored_in, obj, owners)

    def _complete(self, resource: Resource, obj: Json, recorder: Recorder | None) -> Owners | None:
        """Set defaults, let admission decide, and refuse what is not valid.

        Returns:
            The managedFields: what its creator owns is settled before admission adds to it.
        """
        rules = rules_of(resource)
        for part in ("spec", "status") if resource.custom is None else ():
            if part in obj and not isinstance(obj[part], dict):
                error = errors.invalid_value(part, obj[part], "must be an object")
                raise errors.invalid_object(resource, obj["metadata"].get("name", ""), [error])
        rules.set_defaults(obj)
        owners = None if recorder is None else recorder(obj, None, None)
        if resource.stored_in != "nodes" or self._taint_new_nodes:
            rules.admit(self.store, obj)
        found = validate_metadata(resource, obj["metadata"]) + rules.validate(obj)
        if found:
            raise errors.invalid_object(resource, obj["metadata"].get("name", ""), found)
        return owners

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        found = self.store.get(NAMESPACES.stored_in, "", namespace)
        if found is None:
            raise errors.not_found(NAMESPACES, namespace)
        if found.obj["metadata"].get("deletionTimestamp"):
            raise errors.namespace_terminating(resource, name, namespace)

    @staticmethod
    def _reset_status(resource: Resource, obj: Json) -> None:
        """A posted status is dropped; the defaults fill a fresh one."""
        obj.pop("status", None)
        rules_of(resource).set_defaults(obj)

    def check_address(self, resource: Resource, namespace: str, name: str, obj: Json) -> None:
        """Refuse an object that is not the one the URL names.

        Raises:
            ApiError: 400.
        """
        check_addressed(resource, obj, namespace)
        named = obj["metadata"].get("name")
        if not named:
            raise errors.bad_request(
                f"the name of the object ({name} based on URL) was undeterminable: name must be "
                "provided"
            )
        if named != name:
            raise errors.bad_request(
                f"the name of the object ({named}) does not match the name on the URL ({name})"
            )

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        obj: Json,
        *,
        dry_run: bool = False,
        recorder: Recorder | None = None,
    ) -> tuple[Stored, bool]:
        """Replace an object; returns the result and whether it was created.

        Raises:
            ApiError: 400, 404, 409 or 422.
        """
        self.check_address(resource, namespace, name, obj)
        metadata = obj["metadata"]
        current = self.store.get(resource.stored_in, namespace, name)
        if current is None:
            if not resource.create_on_update:
                raise errors.not_found(resource, name)
            metadata.pop("resourceVersion", None)
            return self.create(resource, namespace, obj, dry_run=dry_run, recorder=recorder), True
        self._check_uid_precondition(resource, current, metadata)
        if not metadata.get("resourceVersion") and not resource.unconditional_update:
            error = errors.invalid_value(
                "metadata.resourceVersion", 0, "must be specified for an update"
            )
            raise errors.invalid(resource.group, resource.plural, name, [error])
        return self.replace(resource, current, obj, dry_run=dry_run, recorder=recorder), False

    @staticmethod
    def _check_uid_precondition(resource: Resource, current: Stored, metadata: Json) -> None:
        uid = metadata.get("uid")
        actual = current.obj["metadata"]["uid"]
        if uid and uid != actual:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}"
            raise errors.conflict(resource, current.name, why)

    def replace(
        self,
        resource: Resource,
        current: Stored,
        obj: Json,
        *,
        dry_run: bool = False,
        recorder: Recorder | None = None,
    ) -> Stored:
        """Store ``obj`` in place of ``current``, keeping what an update may not touch.

        Raises:
            ApiError: 409, ``obj`` names another revision; 422.
        """
        self._check_revision(resource, current, obj)
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        old = current.obj
        found = _immutable_metadata(obj, old)
        carry_over(obj, old)
        owners = take_owners(obj, current.owners)
        if resource.has_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)
        rules = rules_of(resource)
        rules.set_defaults(obj)
        rules.keep_on_update(obj, old)
        found += validate_metadata_update(resource, obj["metadata"], old["metadata"])
        found += rules.validate_update(obj, old)
        if found:
            raise errors.invalid_object(resource, current.name, found)
        _count_generation(resource, obj, old)
        owners = _record(recorder, obj, old, owners)
        return self._commit(resource, current, obj, owners, dry_run=dry_run)

    @staticmethod
    def _check_revision(resource: Resource, current: Stored, obj: Json) -> None:
        asked = obj["metadata"].get("resourceVersion")
        if asked and asked not in {"0", str(current.revision)}:
            raise errors.conflict(resource, current.name)

    def replacement(self, subresource: str) -> Replace:
        """How what is sent to a subresource, or to the object itself, replaces what is there."""
        if subresource in {"status", "approval"}:
            return self.replace_status
        return self.replace if not subresource else partial(self._replace_part, subresource)

    def _replace_part(
        self,
        subresource: str,
        resource: Resource,
        current: Stored,
        obj: Json,
        *,
        dry_run: bool = False,
        recorder: Recorder | None = None,
    ) -> Stored:
        """Store the ephemeral containers of ``obj``, or its containers' resources."""
        self._check_revision(resource, current, obj)
        old = current.obj
        found = _immutable_metadata(obj, old)
        part = ephemeral_containers if subresource == "ephemeralcontainers" else resized
        new = {**editable(current), "spec": part(obj.get("spec") or {}, editable(current)["spec"])}
        set_pod_defaults(new)
        found += validate_part(new, old, subresource)
        if found:
            raise errors.invalid_object(resource, current.name, found)
        _count_generation(resource, new, old)
        owners = _record(recorder, new, old, current.owners)
        return self._commit(resource, current, new, owners, dry_run=dry_run)

    def replace_status(
        self,
        resource: Resource,
        current: Stored,
        obj: Json,
        *,
        dry_run: bool = False,
        recorder: Recorder | None = None,
    ) -> Stored:
        """Store the status, labels and annotations of ``obj``; everything else stays.

        Raises:
            ApiError: 409, ``obj`` names another revision; 422, another uid.
        """
        self._check_revision(resource, current, obj)
        old = current.obj
        found = _immutable_metadata(obj, old)
        if resource.custom is not None:
            return self._replace_custom_status(
                resource, current, obj, found, dry_run=dry_run, recorder=recorder
            )
        carry_over(obj, old)
        owners = take_owners(obj, current.owners, is_part=True)
        for key in _KEPT_BY_STATUS:
            if key in old["metadata"]:
                obj["metadata"][key] = old["metadata"][key]
            else:
                obj["metadata"].pop(key, None)
        new = {key: value for key, value in old.items() if key != "status"}
        new["metadata"] = obj["metadata"]
        if "status" in obj:
            new["status"] = obj["status"]
        rules = rules_of(resource)
        rules.keep_on_status_update(new, old)
        found += validate_metadata_update(resource, new["metadata"], old["metadata"])
        found += rules.validate_status(new, old)
        if found:
            raise errors.invalid_object(resource, current.name, found)
        owners = _record(recorder, new, old, owners)
        return self._commit(resource, current, new, owners, dry_run=dry_run)

    def _replace_custom_status(
        self,
        resource: Resource,
        current: Stored,
        obj: Json,
        found: list[errors.FieldError],
        *,
        dry_run: bool,
        recorder: Recorder | None,
    ) -> Stored:
        """Of a custom resource the status alone is stored, not even labels besides."""
        new = editable(current)
        new.pop("status", None)
        if "status" in obj:
            new["status"] = obj["status"]
        rules = rules_of(resource)
        rules.set_defaults(new)
        found = found + rules.validate(new)
        if found:
            raise errors.invalid_object(resource, current.name, found)
        owners = _record(recorder, new, current.obj, current.owners)
        return self._commit(resource, current, new, owners, dry_run=dry_run)

    def _commit(
        self,
        resource: Resource,
        current: Stored,
        obj: Json,
        owners: Owners | None,
        *,
        dry_run: bool,
    ) -> Stored:
        """Write a changed object; one whose last finalizer went while it was deleted goes."""
        if dry_run:
            return Stored(obj, current.revision, owners=owners)
        metadata = obj["metadata"]
        is_finalized = current.obj["metadata"].get("finalizers") and not metadata.get("finalizers")
        is_waiting = metadata.get("deletionTimestamp") and not metadata.get(
            "deletionGracePeriodSeconds"
        )
        if is_finalized and is_waiting and not (obj.get("spec") or {}).get("finalizers"):
            self.store.remove(resource.stored_in, current)
            return Stored(obj, current.revision, owners=owners)
        return self.store.put(resource.stored_in, obj, owners)

    def change_status(
        self, resource: Resource, namespace: str, name: str, transform: Transform
    ) -> Stored | None:
        """Set a status computed from the current object; ``None`` if it is gone meanwhile.

        ``transform`` gets the object and returns its new status; it must not change the object.
        """
        current = self.store.get(resource.stored_in, namespace, name)
        if current is None:
            return None
        return self.store.put(resource.stored_in, {**current.obj, "status": transform(current.obj)})

    def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions
    ) -> tuple[Stored, bool]:
        """Delete an object or begin to; returns its last state and whether it is gone.

        Raises:
            ApiError: 404, or 409 when a precondition does not hold.
        """
        current = self.get(resource, namespace, name)
        plan = plan_deletion(resource, current, options, self.clock)
        return self._carry_out(resource, current, plan, options)

    def _carry_out(
        self, resource: Resource, current: Stored, plan: DeletionPlan, options: DeleteOptions
    ) -> tuple[Stored, bool]:
        if options.dry_run:
            if plan.marked is None:
                return current, True
            return Stored(plan.marked, current.revision, owners=current.owners), True
        if plan.marked is not None:
            current = self.store.put(resource.stored_in, plan.marked)
        if not plan.removes:
            return current, False
        return self.store.remove(resource.stored_in, current), True

    def remove(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Remove an object at once if it is still the one with ``uid``, as a kubelet does."""
        stored = self.store.get(resource.stored_in, namespace, name)
        if stored is not None and stored.obj["metadata"]["uid"] == uid:
            self.store.remove(resource.stored_in, stored)


def _immutable_metadata(obj: Json, old: Json) -> list[errors.FieldError]:
    """Errors of fields that a client set to something else, though they never change."""
    found = []
    metadata, before = obj["metadata"], old["metadata"]
    for key in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        value = metadata.get(key)
        is_ignored = key == "deletionTimestamp" and key in before
        if value is not None and value != before.get(key) and not is_ignored:
            found.append(errors.invalid_value(f"metadata.{key}", value, "field is immutable"))
    return found


def _record(
    recorder: Recorder | None, obj: Json, old: Json, owners: Owners | None
) -> Owners | None:
    return owners if recorder is None else recorder(obj, old, owners)


def _count_generation(resource: Resource, obj: Json, old: Json) -> None:
    if not resource.has_generation:
        return
    uncounted = _UNCOUNTED if resource.has_status else _METADATA
    if {key: value for key, value in obj.items() if key not in uncounted} != {
        key: value for key, value in old.items() if key not in uncounted
    }:
        obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def editable(stored: Stored) -> Json:
    """A copy of an object that may be changed and handed back to the registry."""
    return stored.copy_of_obj()
