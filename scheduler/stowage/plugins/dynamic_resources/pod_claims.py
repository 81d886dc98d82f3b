"""The claims of a pod, and what may be wrong with them before any node is looked at."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api.objects.device import ResourceClaim
from stowage.api.objects.meta import controller_of
from stowage.api.objects.pod import PodResourceClaim
from stowage.state.devices.devices import Devices
from stowage.state.devices.features import DeviceFeatures
from stowage.state.pods.pod_info import PodInfo

#: The name of the claim for extended resources in texts, as long as it does not exist.
SPECIAL_CLAIM = "<extended-resources>"


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


def special_claim_uid(pod: PodInfo) -> str:
    """The UID under which the claim for extended resources is in flight until it exists."""
    return f"{pod.uid}/{SPECIAL_CLAIM}"


def check_no_creation(pod: PodInfo, devices: Devices) -> None:
    """Check that an earlier attempt of the pod is not about to create a claim.

    A second allocation under the same UID would free the devices of the first one, whose claim may
    come to exist all the same.

    Raises:
        ClaimProblem: One is in flight.
    """
    if special_claim_uid(pod) in devices.in_flight:
        text = "resource claim for extended resources is in the process of being created"
        raise ClaimProblem(text)


def check_requests(claim: ResourceClaim, devices: Devices, features: DeviceFeatures) -> None:
    """Check that a claim that is to be allocated is not in flight and its classes exist.

    Raises:
        ClaimProblem: It is in flight, a class does not exist, or it has alternatives while they
            are switched off.
        ValueError: A request is of an unknown kind.
    """
    key = claim.metadata.namespaced_name
    if claim.metadata.uid in devices.in_flight:
        raise ClaimProblem(f"resource claim {key} is in the process of being allocated")
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            _check_class(request.name, request.exactly.device_class_name, devices)
        elif not request.first_available:
            raise ValueError(f"resource claim {key}, request {request.name}: unknown request type")
        elif not features.prioritized_list:
            text = "has subrequests, but the DRAPrioritizedList feature is disabled"
            raise ClaimProblem(f"resource claim {key}, request {request.name}: {text}")
        for each in request.first_available:
            _check_class(f"{request.name}/{each.name}", each.device_class_name, devices)


def _check_class(request: str, class_name: str, devices: Devices) -> None:
    if not class_name:
        raise ValueError(f"request {request}: unsupported request type")
    if devices.classes.get(class_name) is None:
        raise ClaimProblem(f"request {request}: device class {class_name} does not exist")


def _is_owner(pod: PodInfo, claim: ResourceClaim) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.uid
