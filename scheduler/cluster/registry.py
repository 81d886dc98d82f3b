"""Create, read, update and delete objects by the API server's rules, whoever asks.

HTTP handlers, the kubelet stand-in and the controllers all write through here, so that an
in-process write is checked, numbered and watched exactly like one over HTTP.
"""

from collections.abc import Callable
from typing import Any

from scheduler.cluster import errors
from scheduler.cluster.catalog import Catalog
from scheduler.cluster.clock import Clock
from scheduler.cluster.deletion import DeleteOptions, DeletionPlan, plan_deletion
from scheduler.cluster.kind_rules import rules_of
from scheduler.cluster.object_meta import (
    carry_over,
    check_addressed,
    fill_on_create,
    validate_name,
)
from scheduler.cluster.resources import NAMESPACES, Resource
from scheduler.cluster.store import Store, Stored

Json = dict[str, Any]
Transform = Callable[[Json], Json]

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
        self, resource: Resource, namespace: str, obj: Json, *, dry_run: bool = False
    ) -> Stored:
        """Admit, complete, validate and store a new object; ``obj`` becomes the registry's.

        Raises:
            ApiError: 403, 404, 409, 422 or 500, as the API server refuses.
        """
        check_addressed(resource, obj, namespace, "")
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        fill_on_create(resource, obj, namespace, self.clock)
        name = obj["metadata"].get("name", "")
        self._check_object(resource, obj)
        if resource.namespaced:
            self._check_namespace(resource, namespace, name)
        rules = rules_of(resource)
        rules.set_defaults(obj)
        if resource.stored_in != "nodes" or self._taint_new_nodes:
            rules.admit(self.store, obj)
        found = rules.validate(obj)
        if found:
            raise errors.invalid_object(resource, name, found)
        if self.store.get(resource.stored_in, namespace, name) is not None:
            raise errors.already_exists(resource, name)
        if resource.has_status and resource.stored_in not in {"pods", "nodes", "namespaces"}:
            self._reset_status(resource, obj)
        return Stored(obj, 0) if dry_run else self.store.put(resource.stored_in, obj)

    def _check_object(self, resource: Resource, obj: Json) -> None:
        found = validate_name(resource, obj["metadata"])
        for part in ("spec", "status") if resource.custom is None else ():
            if part in obj and not isinstance(obj[part], dict):
                found.append(errors.invalid_value(part, str(obj[part]), "must be an object"))
        if resource.plural == "pods" and "spec" not in obj:
            found.append(errors.required("spec.containers"))
        if found:
            raise errors.invalid_object(resource, obj["metadata"].get("name", ""), found)

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        found = self.store.get(NAMESPACES.stored_in, "", namespace)
        if found is None:
            raise errors.not_found(NAMESPACES, namespace)
        if found.obj["metadata"].get("deletionTimestamp"):
            why = (
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated"
            )
            raise errors.forbidden(resource, name, why)

    @staticmethod
    def _reset_status(resource: Resource, obj: Json) -> None:
        """A posted status is dropped; the defaults fill a fresh one."""
        obj.pop("status", None)
        rules_of(resource).set_defaults(obj)

    def update(
        self, resource: Resource, namespace: str, name: str, obj: Json, *, dry_run: bool = False
    ) -> tuple[Stored, bool]:
        """Replace an object; returns the result and whether it was created.

        Raises:
            ApiError: 404, 409 or 422.
        """
        check_addressed(resource, obj, namespace, name)
        metadata = obj["metadata"]
        metadata.setdefault("name", name)
        if (
            self.store.get(resource.stored_in, namespace, name) is None
            and resource.create_on_update
        ):
            metadata.pop("resourceVersion", None)
            return self.create(resource, namespace, obj, dry_run=dry_run), True
        current = self.get(resource, namespace, name)
        self._check_uid_precondition(resource, current, metadata)
        if not metadata.get("resourceVersion") and not resource.unconditional_update:
            error = errors.FieldError(
                "metadata.resourceVersion",
                "FieldValueInvalid",
                "Invalid value: 0x0: must be specified for an update",
            )
            raise errors.invalid(resource.group, resource.plural, name, [error])
        return self.replace(resource, current, obj, dry_run=dry_run), False

    @staticmethod
    def _check_uid_precondition(resource: Resource, current: Stored, metadata: Json) -> None:
        uid = metadata.get("uid")
        actual = current.obj["metadata"]["uid"]
        if uid and uid != actual:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}"
            raise errors.conflict(resource, current.name, why)

    def replace(
        self, resource: Resource, current: Stored, obj: Json, *, dry_run: bool = False
    ) -> Stored:
        """Store ``obj`` in place of ``current``, keeping what an update may not touch.

        Raises:
            ApiError: 409, ``obj`` names another revision; 422.
        """
        self._check_revision(resource, current, obj)
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        old = current.obj
        self._check_uid_kept(resource, obj, old)
        carry_over(obj, old)
        if resource.has_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)
        rules = rules_of(resource)
        rules.set_defaults(obj)
        found = rules.validate_update(obj, old)
        if found:
            raise errors.invalid_object(resource, current.name, found)
        _count_generation(resource, obj, old)
        return self._commit(resource, current, obj, dry_run)

    @staticmethod
    def _check_revision(resource: Resource, current: Stored, obj: Json) -> None:
        asked = obj["metadata"].get("resourceVersion")
        if asked and asked not in {"0", str(current.revision)}:
            raise errors.conflict(resource, current.name)

    @staticmethod
    def _check_uid_kept(resource: Resource, obj: Json, old: Json) -> None:
        uid = obj["metadata"].get("uid")
        if uid and uid != old["metadata"]["uid"]:
            error = errors.invalid_value("metadata.uid", uid, "field is immutable")
            raise errors.invalid_object(resource, old["metadata"]["name"], [error])

    def replace_status(
        self, resource: Resource, current: Stored, obj: Json, *, dry_run: bool = False
    ) -> Stored:
        """Store the status, labels and annotations of ``obj``; everything else stays.

        Raises:
            ApiError: 409, ``obj`` names another revision; 422, another uid.
        """
        self._check_revision(resource, current, obj)
        old = current.obj
        self._check_uid_kept(resource, obj, old)
        if resource.custom is not None:
            return self._replace_custom_status(resource, current, obj, dry_run=dry_run)
        carry_over(obj, old)
        for key in _KEPT_BY_STATUS:
            if key in old["metadata"]:
                obj["metadata"][key] = old["metadata"][key]
            else:
                obj["metadata"].pop(key, None)
        new = {key: value for key, value in old.items() if key != "status"}
        new["metadata"] = obj["metadata"]
        if "status" in obj:
            new["status"] = obj["status"]
        if resource.plural == "pods":
            new["status"].setdefault("qosClass", (old.get("status") or {}).get("qosClass"))
        return self._commit(resource, current, new, dry_run)

    def _replace_custom_status(
        self, resource: Resource, current: Stored, obj: Json, *, dry_run: bool
    ) -> Stored:
        """Of a custom resource the status alone is stored, not even labels besides."""
        new = editable(current)
        new.pop("status", None)
        if "status" in obj:
            new["status"] = obj["status"]
        rules = rules_of(resource)
        rules.set_defaults(new)
        found = rules.validate(new)
        if found:
            raise errors.invalid_object(resource, current.name, found)
        return self._commit(resource, current, new, dry_run)

    def _commit(self, resource: Resource, current: Stored, obj: Json, dry_run: bool) -> Stored:
        """Write a changed object; one whose last finalizer went while it was deleted goes."""
        if dry_run:
            return Stored(obj, current.revision)
        metadata = obj["metadata"]
        is_finalized = current.obj["metadata"].get("finalizers") and not metadata.get("finalizers")
        is_waiting = metadata.get("deletionTimestamp") and not metadata.get(
            "deletionGracePeriodSeconds"
        )
        if is_finalized and is_waiting and not (obj.get("spec") or {}).get("finalizers"):
            self.store.remove(resource.stored_in, current)
            return Stored(obj, current.revision)
        return self.store.put(resource.stored_in, obj)

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
            return (Stored(plan.marked, current.revision) if plan.marked else current), True
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
