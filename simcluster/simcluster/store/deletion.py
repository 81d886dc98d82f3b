"""Plans deletions: at once, after a grace period, or when the finalizers are gone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simcluster.apiserver.errors import (
    bad_request,
    forbidden,
    invalid,
    invalid_value,
    precondition_failed,
    unsupported_value,
)
from simcluster.clock import Clock, parse_timestamp, timestamp
from simcluster.kinds.resources import Resource
from simcluster.store.store import Stored

Json = dict[str, Any]

_IMMORTAL = {
    "namespaces": frozenset(("default", "kube-system", "kube-public")),
    "priorityclasses.scheduling.k8s.io": frozenset(
        ("system-node-critical", "system-cluster-critical")
    ),
}
_WHY_IMMORTAL = {
    "namespaces": "this namespace may not be deleted",
    "priorityclasses.scheduling.k8s.io": "this is a system priority class and cannot be deleted",
}
_ORPHAN = "orphan"
_FOREGROUND = "foregroundDeletion"


@dataclass(frozen=True)
class DeleteOptions:
    """The supported part of ``metav1.DeleteOptions``.

    ``is_cascade_asked_for`` stands for the deprecated ``orphanDependents: false``; only then a
    deletion that is not complete is answered 202.
    """

    grace_period_s: int | None = None
    propagation_policy: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
    is_cascade_asked_for: bool = False


@dataclass(frozen=True)
class DeletionPlan:
    """The writes of a deletion.

    Args:
        marked: the object with its deletionTimestamp, to be stored first; ``None`` for no change.
        removes: the object is removed then.
    """

    marked: Json | None
    removes: bool


def options_of_query(query: Mapping[str, str]) -> Json:
    """The options of a DELETE without a body.

    Raises:
        ApiError: 400, a value of the wrong kind.
    """
    options: Json = {}
    if policy := query.get("propagationPolicy"):
        options["propagationPolicy"] = policy
    if dry_run := query.get("dryRun"):
        options["dryRun"] = [dry_run]
    if (orphan := query.get("orphanDependents")) is not None:
        options["orphanDependents"] = orphan.lower() not in {"false", "0"}
    if grace := query.get("gracePeriodSeconds"):
        if not grace.lstrip("-").isdigit():
            raise bad_request(f'strconv.ParseInt: parsing "{grace}": invalid syntax')
        options["gracePeriodSeconds"] = int(grace)
    preconditions = {key: query[key] for key in ("uid", "resourceVersion") if query.get(key)}
    return {**options, "preconditions": preconditions}


def parse_delete_options(options: Json) -> DeleteOptions:
    """Parse ``metav1.DeleteOptions``.

    Raises:
        ApiError: 422, a value is unknown or contradicts another one.
    """
    preconditions = options.get("preconditions") or {}
    asked, orphan = options.get("propagationPolicy"), options.get("orphanDependents")
    policy, dry_run = asked or "", options.get("dryRun") or []
    _check_options(asked, orphan, dry_run)
    if not policy and orphan is not None:
        policy = "Orphan" if orphan else "Background"
    return DeleteOptions(
        grace_period_s=options.get("gracePeriodSeconds"),
        propagation_policy=policy,
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        dry_run=bool(dry_run),
        is_cascade_asked_for=orphan is False,
    )


_POLICIES = ("Foreground", "Background", "Orphan")


def _check_options(policy: str | None, orphan_dependents: bool | None, dry_run: list[str]) -> None:
    found = []
    if policy is not None and orphan_dependents is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        found.append(invalid_value("propagationPolicy", policy, detail))
    if policy is not None and policy not in _POLICIES:
        found.append(unsupported_value("propagationPolicy", policy, (*_POLICIES, "nil")))
    if any(word != "All" for word in dry_run):
        found.append(unsupported_value("dryRun", dry_run, ("All",)))
    if found:
        raise invalid("meta.k8s.io", "DeleteOptions", "", found)


def plan_deletion(
    resource: Resource, current: Stored, options: DeleteOptions, clock: Clock
) -> DeletionPlan:
    """Decide how ``current`` is deleted.

    A pod is deleted in two writes, the mark and the removal, and if it is bound and running, its
    grace period lies between them. Other kinds are removed at once unless they have finalizers.

    Raises:
        ApiError: 403, the object must not be deleted; 409, a precondition does not hold.
    """
    if current.name in _IMMORTAL.get(resource.stored_in, ()):
        raise forbidden(resource, current.name, _WHY_IMMORTAL[resource.stored_in])
    _check_preconditions(resource, current, options)
    finalizers = _finalizers(resource, current.obj, options)
    if resource.plural == "pods":
        return _plan_graceful(current, options, finalizers, clock)
    if resource.plural == "namespaces" and current.obj["spec"].get("finalizers"):
        return _plan_namespace(current, clock)
    if not finalizers:
        return DeletionPlan(None, removes=True)
    if current.obj["metadata"].get("deletionTimestamp"):
        return DeletionPlan(_with_finalizers(current.obj, finalizers), removes=False)
    return DeletionPlan(_marked(current.obj, clock.now(), 0, finalizers), removes=False)


def _check_preconditions(resource: Resource, current: Stored, options: DeleteOptions) -> None:
    uid, revision = current.obj["metadata"]["uid"], str(current.revision)
    for name, asked, actual, what in (
        ("UID", options.uid, uid, "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, revision, "modified"),
    ):
        if asked and asked != actual:
            raise precondition_failed(
                resource,
                current.name,
                f"the {name} in the precondition ({asked}) does not match the {name} in record "
                f"({actual}). The object might have been {what}",
            )


def _finalizers(resource: Resource, obj: Json, options: DeleteOptions) -> list[str]:
    """The object's finalizers with those the propagation policy asks for."""
    kept = [
        finalizer
        for finalizer in obj["metadata"].get("finalizers") or ()
        if not options.propagation_policy or finalizer not in {_ORPHAN, _FOREGROUND}
    ]
    policy = options.propagation_policy
    if not policy and resource.orphans_by_default:
        policy = "Orphan"
    wanted = {"Orphan": _ORPHAN, "Foreground": _FOREGROUND}.get(policy)
    for added in (wanted, resource.deletion_finalizer):
        if added and added not in kept:
            kept.append(added)
    return kept


def _with_finalizers(obj: Json, finalizers: list[str]) -> Json | None:
    """The object with other finalizers; ``None`` if it has these, or is to go without any."""
    metadata = obj["metadata"]
    if not finalizers or finalizers == metadata.get("finalizers"):
        return None
    return {**obj, "metadata": {**metadata, "finalizers": finalizers}}


def _plan_graceful(
    current: Stored, options: DeleteOptions, finalizers: list[str], clock: Clock
) -> DeletionPlan:
    metadata = current.obj["metadata"]
    began = metadata.get("deletionTimestamp")
    if began is None:
        grace = _pod_grace_s(current.obj, options)
        marked = _marked(current.obj, clock.after(grace), grace, finalizers)
        return DeletionPlan(marked, removes=not grace and not finalizers)
    pending = metadata.get("deletionGracePeriodSeconds") or 0
    if not pending:
        return DeletionPlan(_with_finalizers(current.obj, finalizers), removes=not finalizers)
    asked = options.grace_period_s
    if asked is None or asked >= pending:
        return DeletionPlan(None, removes=False)
    ends_at = timestamp(int(parse_timestamp(began)) - pending + asked)
    marked = {
        **current.obj,
        "metadata": {
            **metadata,
            "deletionTimestamp": ends_at,
            "deletionGracePeriodSeconds": asked,
        },
    }
    return DeletionPlan(marked, removes=not asked and not finalizers)


def _pod_grace_s(pod: Json, options: DeleteOptions) -> int:
    spec = pod["spec"]
    if not spec.get("nodeName") or pod["status"].get("phase") in {"Succeeded", "Failed"}:
        return 0
    grace = options.grace_period_s
    if grace is None:
        grace = int(spec.get("terminationGracePeriodSeconds", 0))
    return 1 if grace < 0 else grace


def _marked(obj: Json, when: str, grace_s: int, finalizers: list[str]) -> Json:
    metadata = {
        **obj["metadata"],
        "deletionTimestamp": when,
        "deletionGracePeriodSeconds": grace_s,
    }
    if finalizers:
        metadata["finalizers"] = finalizers
    if metadata.get("generation"):
        metadata["generation"] += 1
    return {**obj, "metadata": metadata}


def _plan_namespace(current: Stored, clock: Clock) -> DeletionPlan:
    if current.obj["metadata"].get("deletionTimestamp"):
        return DeletionPlan(None, removes=False)
    metadata = {**current.obj["metadata"], "deletionTimestamp": clock.now()}
    status = {**current.obj.get("status", {}), "phase": "Terminating"}
    return DeletionPlan({**current.obj, "metadata": metadata, "status": status}, removes=False)
