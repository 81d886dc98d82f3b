"""Why the claims for volumes of a pod that waits for them are not bound."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import PersistentVolumeClaim, StorageClass


def unbound_claims(pod: Pod, objects: ClusterObjects) -> Iterator[str]:
    """A sentence for each claim of a pod that exists and names no volume."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        key = f"{pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
        claim = objects.find(PersistentVolumeClaim, key)
        if claim is not None and not claim.spec.volume_name:
            yield f"PersistentVolumeClaim {key} is not bound: {_why(claim, objects)}"


def _why(claim: PersistentVolumeClaim, objects: ClusterObjects) -> str:
    name = claim.spec.storage_class_name
    if not name:
        return "it names no StorageClass, and no PersistentVolume has been bound to it"
    found = objects.find(StorageClass, name)
    if found is None:
        return f"its StorageClass {name} does not exist"
    if found.volume_binding_mode == "WaitForFirstConsumer":
        return f"its StorageClass {name} waits for the node of the pod"
    return (
        f"its StorageClass {name} binds at once, and neither {found.provisioner} nor a "
        "PersistentVolume has served it yet"
    )
