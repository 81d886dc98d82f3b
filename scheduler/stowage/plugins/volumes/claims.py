"""A pod's claims, found or missed, in the words of the API server's caches."""

from __future__ import annotations

from stowage.api.objects.volume import PersistentVolumeClaim
from stowage.api.values.volume_claims import UsedClaim, used_claims
from stowage.state.pods.pod_info import PodInfo


def claim_not_found(name: str) -> str:
    """What is said of a claim that is not there."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    """What is said of a volume that is not there."""
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    """What is said of a storage class that is not there."""
    return f'storageclass.storage.k8s.io "{name}" not found'


def not_owner(claim: PersistentVolumeClaim, pod: PodInfo) -> str:
    """What is said of an ephemeral volume's claim that somebody else made."""
    return (
        f"PVC {claim.metadata.namespaced_name} was not created for pod {pod.key} (pod is not owner)"
    )


def claims_of(pod: PodInfo) -> list[UsedClaim]:
    """The claims a pod uses, in the order of its volumes."""
    return list(used_claims(pod.volumes, pod.name)) if pod.volumes else []


def uses_claim(pod: PodInfo, claim: PersistentVolumeClaim, *, ephemeral: bool = True) -> bool:
    """Whether a pod uses a claim; its ephemeral volumes count unless told otherwise."""
    meta = claim.metadata
    return pod.namespace == meta.namespace and any(
        used.name == meta.name and (ephemeral or not used.is_ephemeral) for used in claims_of(pod)
    )
