"""Admission of pod groups: their Workload, their priority and the finalizer that protects them."""

from simcluster.apiserver.errors import forbidden
from simcluster.kinds.admission.priority_classes import check_priority, priority_class
from simcluster.kinds.resources import POD_GROUPS, WORKLOADS
from simcluster.store.store import Store
from simcluster.values import Json

PROTECTION_FINALIZER = "scheduling.k8s.io/podgroup-protection"


def admit_pod_group(store: Store, group: Json) -> None:
    """Set the priority, add the finalizer, and look for the Workload and its template.

    Raises:
        ApiError: 403, the Workload, the template or the class is missing or contradicted.
    """
    metadata, spec = group["metadata"], group["spec"]
    name = metadata.get("name", "")
    found = priority_class(store, POD_GROUPS, name, spec.get("priorityClassName"))
    value = 0 if found is None else found["value"]
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    check_priority(POD_GROUPS, name, spec, value)
    spec["priority"] = value
    finalizers = metadata.get("finalizers") or []
    if PROTECTION_FINALIZER not in finalizers:
        metadata["finalizers"] = [*finalizers, PROTECTION_FINALIZER]
    reference = (spec.get("podGroupTemplateRef") or {}).get("workload")
    if reference and (why := _missing(store, metadata["namespace"], reference)):
        raise forbidden(POD_GROUPS, name, f"PodGroup rejected: {why}")


def _missing(store: Store, namespace: str, reference: Json) -> str:
    """What a reference to a template of a Workload names in vain; empty if nothing."""
    name = reference.get("workloadName", "")
    workload = store.get(WORKLOADS.stored_in, namespace, name)
    if workload is None:
        return f'Workload "{name}" not found'
    if workload.is_terminating:
        return f'Workload "{name}" is being deleted'
    template = reference.get("podGroupTemplateName", "")
    names = {each.get("name") for each in workload.spec.get("podGroupTemplates") or ()}
    return (
        "" if template in names else f'PodGroupTemplate "{template}" not found in Workload "{name}"'
    )


def keep_metadata(new: Json, old: Json) -> None:
    """Keep the labels and annotations, which the status subresource of pod groups leaves alone."""
    for field in ("labels", "annotations"):
        new["metadata"].pop(field, None)
        if field in old["metadata"]:
            new["metadata"][field] = old["metadata"][field]
    new.setdefault("status", {})
