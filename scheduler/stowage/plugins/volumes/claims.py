"""The claims that a pod uses, and messages about missing objects."""

from __future__ import annotations

from stowage.api.objects.volume import PersistentVolumeClaim
from stowage.api.values.volume_claims import UsedClaim, used_claims
from stowage.state.pods.pod_info import PodInfo


def claim_not_found(name: str) -> str:
    """The message for a claim that does not exist."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    """The message for a volume that does not exist."""
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    """The message for a storage class that does not exist."""
    return f'storageclass.storage.k8s.io "{name}" not found'


def not_owner(claim: PersistentVolumeClaim, pod: PodInfo) -> str:
    """The message for an ephemeral volume's claim that belongs to another owner."""
    return (
        f"PVC {claim.metadata.namespaced_name} was not created for pod {pod.key} (pod is not owner)"
    )


def claims_of(pod: PodInfo) -> list[UsedClaim]:
    """The claims a pod uses, in the order of its volumes."""
    return list(used_claims(pod.volumes, pod.name)) if pod.volumes else []


def uses_claim(pod: PodInfo, claim: PersistentVolumeClaim, *, ephemeral: bool = True) -> bool:
    """Whether a pod uses a claim; with `ephemeral`, through an ephemeral volume too."""
    meta = claim.metadata
    return pod.namespace == meta.namespace and any(
        used.name == meta.name and (ephemeral or not used.is_ephemeral) for used in claims_of(pod)
    )
