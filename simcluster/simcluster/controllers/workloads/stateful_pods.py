"""Names, ordinals and shape of a StatefulSet's pods."""

import copy
from typing import NamedTuple

from simcluster.controllers.ownership import owner_reference
from simcluster.controllers.workloads.controller_revisions import REVISION_LABEL
from simcluster.kinds.resources import STATEFUL_SETS
from simcluster.store.store import Stored
from simcluster.values import Json

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"


class Ordinals(NamedTuple):
    """Which ordinals a StatefulSet wants, and from which on pods are updated."""

    start: int
    wanted: range
    partition: int


def ordinals_of(stored: Stored) -> Ordinals:
    """The ordinals of a StatefulSet."""
    spec = stored.obj["spec"]
    start = (spec.get("ordinals") or {}).get("start", 0)
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    partition = rolling.get("partition") or 0
    return Ordinals(start, range(start, start + spec["replicas"]), partition)


def ordinal_of(pod_name: str, owner_name: str) -> int | None:
    """The ordinal at the end of a pod's name; ``None`` if it is no name of the owner's pods."""
    ordinal = pod_name.removeprefix(f"{owner_name}-")
    return int(ordinal) if ordinal != pod_name and ordinal.isdigit() else None


def revision_name(pod: Stored) -> str:
    """The revision a pod was made from."""
    return str((pod.obj["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def claim_names(stored: Stored, pod_name: str) -> dict[str, str]:
    """The claims of one pod, by the name of their template."""
    templates = stored.obj["spec"].get("volumeClaimTemplates") or ()
    names = [template["metadata"]["name"] for template in templates]
    return {name: f"{name}-{pod_name}" for name in names}


def stateful_pod(stored: Stored, ordinal: int, template: Json, revision: str) -> Json:
    """The pod with this ordinal."""
    name = f"{stored.name}-{ordinal}"
    metadata: Json = copy.deepcopy(template.get("metadata") or {})
    metadata.pop("creationTimestamp", None)
    labels = metadata.setdefault("labels", {})
    labels |= {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal), REVISION_LABEL: revision}
    metadata |= {
        "name": name,
        "namespace": stored.namespace,
        "generateName": f"{stored.name}-",
        "ownerReferences": [owner_reference(STATEFUL_SETS, stored)],
    }
    spec = copy.deepcopy(template["spec"])
    spec["hostname"] = name
    if stored.obj["spec"].get("serviceName"):
        spec["subdomain"] = stored.obj["spec"]["serviceName"]
    claims = claim_names(stored, name)
    kept = [volume for volume in spec.get("volumes") or () if volume["name"] not in claims]
    made = [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
        for volume, claim in claims.items()
    ]
    if kept or made:
        spec["volumes"] = made + kept
    return {"metadata": metadata, "spec": spec}
