"""The claims of a pod, and what may be wrong with them before any node is looked at."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api.objects.device import ResourceClaim
from stowage.api.objects.meta import controller_of
from stowage.api.objects.pod import PodResourceClaim
from stowage.state.devices.devices import Devices
from stowage.state.pods.pod_info import PodInfo


class ClaimProblem(ValueError):  # noqa: N818 - it names the finding
    """Why a pod cannot be scheduled with its claims; the text is kube-scheduler's reason."""


def pod_claims(pod: PodInfo, devices: Devices) -> list[ResourceClaim]:
    """The claims that ``spec.resourceClaims`` names, in order (``foreachPodResourceClaim``).

    Raises:
        ClaimProblem: A claim is missing, is being deleted, or belongs to another pod.
    """
    return list(_claims(pod, devices))


def _claims(pod: PodInfo, devices: Devices) -> Iterator[ResourceClaim]:
    for entry in pod.spec.resource_claims:
        name = claim_name(pod, entry)
        if name is None:
            continue
        claim = devices.claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            raise ClaimProblem(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimProblem(f'resourceclaim "{name}" is being deleted')
        if entry.resource_claim_name is None and not _is_owner(pod, claim):
            text = f"ResourceClaim {claim.metadata.namespaced_name} was not created for"
            raise ClaimProblem(f"{text} Pod {pod.key} (Pod is not owner)")
        yield claim


def claim_name(pod: PodInfo, entry: PodResourceClaim) -> str | None:
    """The name of the claim of an entry; None if the pod does not need one.

    Raises:
        ClaimProblem: The entry names nothing, or its claim was not generated yet.
    """
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.resource_claim_template_name is None:
        text = f'pod "{pod.key}", spec.resourceClaim "{entry.name}"'
        raise ClaimProblem(f"{text}: none of the supported fields are set")
    for status in pod.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    raise ClaimProblem(f'pod "{pod.key}": ResourceClaim not created yet')


def _is_owner(pod: PodInfo, claim: ResourceClaim) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.uid
