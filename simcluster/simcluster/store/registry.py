"""Creates, reads, updates and deletes objects by the API server's rules.

HTTP handlers, the kubelet simulation and the controllers all write through the registry, so an
in-process write is checked, numbered and watched exactly like a write over HTTP.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from simcluster.apiserver import errors
from simcluster.clock import Clock
from simcluster.features import alpha_kinds
from simcluster.kinds.admission.limit_ranges import fill_by_limit_ranges, review_pod_limits
from simcluster.kinds.admission.quotas import apply_charges, charges_of_change, charges_of_new
from simcluster.kinds.admission.service_accounts import admit_service_account
from simcluster.kinds.catalog import Catalog
from simcluster.kinds.defaults.pods import set_pod_defaults
from simcluster.kinds.gated_fields import drop_gated_fields
from simcluster.kinds.resources import NAMESPACES, Resource
from simcluster.kinds.rules import rules_of
from simcluster.kinds.subresources.ephemeral_containers import (
    ephemeral_container_errors,
    ephemeral_containers,
)
from simcluster.kinds.subresources.resize import resize_errors, resized
from simcluster.patch.apply import Recorder
from simcluster.store.deletion import DeleteOptions, plan_deletion
from simcluster.store.etcd_keys import other_uid
from simcluster.store.go_numbers import numbers_in_go
from simcluster.store.managed_fields import ManagedFields
from simcluster.store.object_meta import (
    carry_over,
    check_addressed,
    fill_on_create,
    immutable_metadata_errors,
    keep_fields,
    take_managed_fields,
)
from simcluster.store.store import Store, Stored
from simcluster.validation.metadata import validate_metadata, validate_metadata_update
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates

Json = dict[str, Any]
Transform = Callable[[Json], Json]

WHOLE_OBJECT_SUBRESOURCES = frozenset(("status", "approval", "ephemeralcontainers", "resize"))
"""Subresources that are read and written as the object itself, and change a part of it."""
_METADATA = frozenset(("metadata",))
_UNCOUNTED = frozenset(("metadata", "status"))


StatusCheck = Callable[[Json, Json], list[errors.FieldError]]
"""Takes the new and the old object."""


def _allowed(*_objects: Json) -> list[errors.FieldError]:
    return []


class WriteOptions(NamedTuple):
    """How an object is written.

    Args:
        dry_run: nothing is stored.
        recorder: computes the managedFields; without it an object keeps those it has.
        status_errors: errors of a change to the status that depend on the user.
    """

    dry_run: bool = False
    recorder: Recorder | None = None
    status_errors: StatusCheck = _allowed

    def managed_fields(
        self, obj: Json, before: Json | None, managed_fields: ManagedFields | None
    ) -> ManagedFields | None:
        """The managedFields after a write."""
        return (
            managed_fields if self.recorder is None else self.recorder(obj, before, managed_fields)
        )


DIRECT = WriteOptions()
"""A write by a component inside the cluster."""
Replace = Callable[[Resource, Stored, Json, WriteOptions], Stored]


class Registry:
    """The objects of the cluster.

    Args:
        store: keeps the objects.
        clock: for creation and deletion timestamps.
        taint_new_nodes: give nodes that are created the not-ready taint, as the API server's
            admission does.
        gates: the feature gates, which decide about alpha kinds and fields.
        admits_service_accounts: give each new pod a ServiceAccount, with its token.

    Attributes:
        catalog: the served resources.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        taint_new_nodes: bool = True,
        gates: FeatureGates = DEFAULT_FEATURE_GATES,
        admits_service_accounts: bool = False,
    ) -> None:
        self.store = store
        self.clock = clock
        self.catalog = Catalog(alpha_kinds(gates))
        self.gates = gates
        self._taint_new_nodes = taint_new_nodes
        self._admits_service_accounts = admits_service_accounts

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
        self, resource: Resource, namespace: str, obj: Json, options: WriteOptions = DIRECT
    ) -> Stored:
        """Admit, complete, validate and store a new object; ``obj`` becomes the registry's.

        Raises:
            ApiError: 403, 404, 409, 422 or 500, as the API server refuses.
        """
        check_addressed(resource, obj, namespace)
        _drop_type(obj)
        fill_on_create(resource, obj, namespace, self.clock)
        name = obj["metadata"].get("name", "")
        if resource.namespaced:
            self._check_namespace(resource, namespace, name)
        managed_fields = self._complete(resource, obj, options)
        charges = charges_of_new(self.store, resource, obj)
        if self.store.get(resource.stored_in, namespace, name) is not None:
            raise errors.already_exists(resource, name)
        if resource.has_status and resource.stored_in not in {"pods", "nodes", "namespaces"}:
            # A posted status is dropped; the defaults fill a fresh one.
            obj.pop("status", None)
            self._set_defaults(resource, obj)
        if resource.custom is not None:
            obj = numbers_in_go(obj)
        if options.dry_run:
            return Stored(obj, 0, managed_fields=managed_fields)
        apply_charges(self.store, charges)
        return self.store.put(resource.stored_in, obj, managed_fields)

    def _complete(
        self, resource: Resource, obj: Json, options: WriteOptions
    ) -> ManagedFields | None:
        """Set defaults, run admission and validate.

        Returns:
            The managedFields, which are computed before admission adds fields.
        """
        rules, name = rules_of(resource), obj["metadata"].get("name", "")
        for part in ("spec", "status") if resource.custom is None else ():
            if part in obj and not isinstance(obj[part], dict):
                error = errors.invalid_value(part, obj[part], "must be an object")
                raise errors.invalid_object(resource, name, [error])
        self._set_defaults(resource, obj)
        managed_fields = options.managed_fields(obj, None, None)
        self._admit(resource, obj)
        _refuse(resource, name, validate_metadata(resource, obj["metadata"]) + rules.validate(obj))
        rules.review(self.store, obj)
        return managed_fields

    def _admit(self, resource: Resource, obj: Json) -> None:
        if resource.stored_in == "nodes" and not self._taint_new_nodes:
            return
        if resource.stored_in == "pods" and self._admits_service_accounts:
            admit_service_account(self.store, obj)
        rules_of(resource).admit(self.store, obj)
        drop_gated_fields(self.gates, resource, obj)

    def _set_defaults(self, resource: Resource, obj: Json, before: Json | None = None) -> None:
        """Set the defaults of an object, without the fields of feature gates that are off."""
        rules_of(resource).set_defaults(obj)
        drop_gated_fields(self.gates, resource, obj, before)

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        found = self.store.get(NAMESPACES.stored_in, "", namespace)
        if found is None:
            raise errors.not_found(NAMESPACES, namespace)
        if found.obj["metadata"].get("deletionTimestamp"):
            raise errors.namespace_terminating(resource, name, namespace)

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
        options: WriteOptions = DIRECT,
    ) -> tuple[Stored, bool]:
        """Replace an object; returns the result and whether it was created.

        Raises:
            ApiError: 400, 403, 404, 409 or 422.
        """
        self.check_address(resource, namespace, name, obj)
        metadata = obj["metadata"]
        current = self.store.get(resource.stored_in, namespace, name)
        if current is None:
            if not resource.create_on_update:
                raise errors.not_found(resource, name)
            metadata.pop("resourceVersion", None)
            return self.create(resource, namespace, obj, options), True
        uid, actual = metadata.get("uid"), current.obj["metadata"]["uid"]
        if uid and uid != actual:
            raise errors.conflict(resource, name, other_uid(resource, current, uid))
        return self.replace(resource, current, obj, options), False

    def replacement(self, subresource: str) -> Replace:
        """The method that replaces an object, or the part that a subresource stands for."""
        if subresource in {"status", "approval"}:
            return self.replace_status
        return self.replace if not subresource else partial(self._replace_part, subresource)

    def replace(
        self, resource: Resource, current: Stored, obj: Json, options: WriteOptions = DIRECT
    ) -> Stored:
        """Store ``obj`` in place of ``current``, keeping what an update may not touch.

        Raises:
            ApiError: 403; 409, ``obj`` names another revision; 422.
        """
        _check_revision(resource, current, obj)
        old = current.obj
        found = immutable_metadata_errors(obj, old)
        _drop_type(obj)
        carry_over(obj, old)
        managed_fields = take_managed_fields(obj, current.managed_fields)
        if resource.has_status:
            keep_fields(obj, old, ("status",))
        rules = rules_of(resource)
        self._set_defaults(resource, obj, old)
        rules.keep_on_update(obj, old)
        found += validate_metadata_update(resource, obj["metadata"], old["metadata"])
        if resource.custom is not None:
            found += found  # both the storage and the strategy check the metadata
        found += rules.validate_update(obj, old)
        if not found:
            rules.review_update(self.store, obj, old)
        return self._commit(resource, current, obj, managed_fields, found, options)

    def _replace_part(
        self,
        subresource: str,
        resource: Resource,
        current: Stored,
        obj: Json,
        options: WriteOptions = DIRECT,
    ) -> Stored:
        """Store the ephemeral containers of ``obj``, or the resources of its containers."""
        _check_revision(resource, current, obj)
        found = immutable_metadata_errors(obj, current.obj)
        asked, new = obj.get("spec") or {}, editable(current)
        if subresource == "ephemeralcontainers":
            new["spec"] = ephemeral_containers(asked, new["spec"])
            set_pod_defaults(new)
            found += ephemeral_container_errors(new, current.obj)
        else:
            new["spec"] = resized(asked, new["spec"])
            set_pod_defaults(new)
            fill_by_limit_ranges(self.store, new)
            found += resize_errors(asked, new, current.obj)
            if not found:
                review_pod_limits(self.store, new)
        return self._commit(resource, current, new, current.managed_fields, found, options)

    def replace_status(
        self, resource: Resource, current: Stored, obj: Json, options: WriteOptions = DIRECT
    ) -> Stored:
        """Store the status, labels and annotations of ``obj``; of a custom resource the status.

        Raises:
            ApiError: 409, ``obj`` names another revision; 422, another uid.
        """
        _check_revision(resource, current, obj)
        old, managed_fields, rules = current.obj, current.managed_fields, rules_of(resource)
        found = immutable_metadata_errors(obj, old)
        if resource.custom is not None:
            new = editable(current)
            keep_fields(new, obj, ("status",))
            rules.set_defaults(new)
            found += rules.validate_update(new, old)
            return self._commit(resource, current, new, managed_fields, found, options)
        carry_over(obj, old)
        managed_fields = take_managed_fields(obj, managed_fields, is_part=True)
        keep_fields(obj["metadata"], old["metadata"], ("ownerReferences", "finalizers"))
        new = {**old, "metadata": obj["metadata"]}
        keep_fields(new, obj, ("status",))
        rules.keep_on_status_update(new, old)
        found += validate_metadata_update(resource, new["metadata"], old["metadata"])
        found += options.status_errors(new, old) + rules.validate_status(new, old)
        return self._commit(resource, current, new, managed_fields, found, options)

    def _commit(
        self,
        resource: Resource,
        current: Stored,
        obj: Json,
        managed_fields: ManagedFields | None,
        found: list[errors.FieldError],
        options: WriteOptions,
    ) -> Stored:
        """Store a changed object unless it has errors; it goes if its last finalizer went."""
        _refuse(resource, current.name, found)
        charges = charges_of_change(self.store, resource, obj, current.obj)
        if resource.custom is not None:
            obj = numbers_in_go(obj)
        _count_generation(resource, obj, current.obj)
        managed_fields = options.managed_fields(obj, current.obj, managed_fields)
        if options.dry_run:
            return Stored(obj, current.revision, managed_fields=managed_fields)
        metadata = obj["metadata"]
        is_finalized = current.obj["metadata"].get("finalizers") and not metadata.get("finalizers")
        is_waiting = metadata.get("deletionTimestamp") and not metadata.get(
            "deletionGracePeriodSeconds"
        )
        if is_finalized and is_waiting and not (obj.get("spec") or {}).get("finalizers"):
            self.store.remove(resource.stored_in, current)
            return Stored(obj, current.revision, managed_fields=managed_fields)
        apply_charges(self.store, charges)
        return self.store.put(resource.stored_in, obj, managed_fields)

    def change_status(
        self, resource: Resource, namespace: str, name: str, transform: Transform
    ) -> Stored | None:
        """Set a status computed from the current object; ``None`` if the object is gone.

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
        if options.dry_run:
            if plan.marked is None:
                return current, True
            marked = Stored(plan.marked, current.revision, managed_fields=current.managed_fields)
            return marked, plan.removes
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


def _drop_type(obj: Json) -> None:
    """Drop the kind and apiVersion, which stored objects do not carry."""
    obj.pop("kind", None)
    obj.pop("apiVersion", None)


def _refuse(resource: Resource, name: str, found: list[errors.FieldError]) -> None:
    if found:
        raise errors.invalid_object(resource, name, found)


def _check_revision(resource: Resource, current: Stored, obj: Json) -> None:
    asked = obj["metadata"].get("resourceVersion")
    if asked in {None, "", "0"} and not resource.unconditional_update:
        field, detail = "metadata.resourceVersion", "must be specified for an update"
        error = errors.invalid_value(field, 0, detail)
        raise errors.invalid(resource.group, resource.plural, current.name, [error])
    if asked and not (asked.isascii() and asked.isdigit()):
        raise errors.internal(f'strconv.ParseUint: parsing "{asked}": invalid syntax')
    if asked and asked not in {"0", str(current.revision)}:
        raise errors.conflict(resource, current.name)


def _count_generation(resource: Resource, obj: Json, old: Json) -> None:
    if not resource.has_generation:
        return
    uncounted = _UNCOUNTED if resource.has_status else _METADATA
    if _without(obj, uncounted) != _without(old, uncounted):
        obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _without(obj: Json, keys: Iterable[str]) -> Json:
    return {key: value for key, value in obj.items() if key not in keys}


def editable(stored: Stored) -> Json:
    """A copy of an object that may be changed and handed back to the registry."""
    return stored.copy_of_obj()
