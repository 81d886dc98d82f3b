"""Which claims of devices a pod uses, and which pods a claim is for."""

from simcluster.controllers.ownership import controller_reference, is_finished
from simcluster.store.store import Stored
from simcluster.values import Json

MAX_CONSUMERS = 256


def uses_device_claims(pod: Stored) -> bool:
    """Whether a pod may use claims of devices; cheaper than to decode it."""
    return b"esourceClaim" in pod.content


def device_claim_name(pod: Json, entry: Json) -> str | None:
    """The name of the claim for an entry of a pod's ``spec.resourceClaims``.

    It is empty if no claim is needed, and ``None`` before a claim is made from the template.
    """
    if name := entry.get("resourceClaimName"):
        return str(name)
    for status in pod["status"].get("resourceClaimStatuses") or ():
        if status["name"] == entry["name"]:
            return str(status.get("resourceClaimName", ""))
    return None


def device_claims_of(pod: Json) -> list[str]:
    """The names of a pod's claims, as far as they are made: those for extended resources too."""
    entries = pod["spec"].get("resourceClaims") or ()
    found = [device_claim_name(pod, entry) for entry in entries]
    extended = pod["status"].get("extendedResourceClaimStatus") or {}
    return [name for name in (*found, extended.get("resourceClaimName")) if name]


def is_made_for(claim: Stored, pod: Stored) -> bool:
    """Whether a pod is the managing controller of a claim."""
    reference = controller_reference(claim.obj)
    return reference is not None and reference["uid"] == pod.uid


def is_reserved_for(claim: Stored, pod: Stored) -> bool:
    """Whether a pod may use a claim's devices."""
    consumers = claim.status.get("reservedFor") or ()
    return any(consumer.get("uid") == pod.uid for consumer in consumers)


def is_done(pod: Stored) -> bool:
    """Whether no container of a pod runs or will run."""
    return is_finished(pod) or (pod.is_terminating and not pod.spec.get("nodeName"))
