"""Instructions that write volumes and their claims."""

from __future__ import annotations

import msgspec

from stowage.api.instructions.references import PodReference
from stowage.api.objects.meta import ObjectReference


class BindVolumeToClaim(msgspec.Struct, frozen=True):
    """Set ``spec.claimRef`` of a persistent volume, unless the volume was updated since.

    Attributes:
        name: The name of the volume.
        uid: The UID of the volume.
        resource_version: The version on which the decision is based.
        claim_ref: The new ``spec.claimRef``.
        sets_bound_by_controller: Whether to set ``pv.kubernetes.io/bound-by-controller``.
    """

    name: str
    uid: str
    resource_version: str
    claim_ref: ObjectReference
    sets_bound_by_controller: bool


class SetSelectedNode(msgspec.Struct, frozen=True):
    """Set the selected node of a claim, unless the claim was updated since.

    Attributes:
        namespace: The namespace of the claim.
        name: The name of the claim.
        uid: The UID of the claim.
        resource_version: The version on which the decision is based.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str


class BindVolumes(msgspec.Struct, frozen=True, tag=True):
    """Write the volumes and claims of a pod, then report ``VolumesWritten``.

    If a write fails, the writes before it stay: they are valid for any node of the pod. `number` is
    repeated in the report.
    """

    pod: PodReference
    node_name: str
    volumes: tuple[BindVolumeToClaim, ...] = ()
    claims: tuple[SetSelectedNode, ...] = ()
    number: int = 0
