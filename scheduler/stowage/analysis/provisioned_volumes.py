"""What the volume controllers make of a scheduler's decision about volumes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.instructions import BindVolumes
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.node import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from stowage.api.objects.volume import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeNodeAffinity,
)
from stowage.api.values.csi_migration import ZONE
from stowage.api.values.volume_claims import (
    BIND_COMPLETED,
    STORAGE,
    claim_class,
    reference_to,
    with_selected_node,
)

_BOUND = "Bound"


def written_volumes(
    instruction: BindVolumes, objects: ClusterObjects
) -> list[PersistentVolume | PersistentVolumeClaim]:
    """The volumes and claims after the writes, the binding and the provisioning.

    A provisioned volume can be reached from the zone of the selected node, or everywhere if the
    node has none. The objects have no resourceVersion: with the one that is known, they would be no
    news.
    """
    return [*_given(instruction, objects), *_provisioned(instruction, objects)]


def _given(
    instruction: BindVolumes, objects: ClusterObjects
) -> Iterator[PersistentVolume | PersistentVolumeClaim]:
    for write in instruction.volumes:
        volume = objects.find(PersistentVolume, write.name)
        reference = write.claim_ref
        claim = objects.find(PersistentVolumeClaim, f"{reference.namespace}/{reference.name}")
        if volume is not None and claim is not None:
            meta = replace(volume.metadata, resource_version="")
            spec = replace(volume.spec, claim_ref=reference)
            yield PersistentVolume(meta, spec, PersistentVolumeStatus(_BOUND))
            yield _bound(claim, write.name)


def _provisioned(
    instruction: BindVolumes, objects: ClusterObjects
) -> Iterator[PersistentVolume | PersistentVolumeClaim]:
    for write in instruction.claims:
        claim = objects.find(PersistentVolumeClaim, f"{write.namespace}/{write.name}")
        if claim is None:
            continue
        name = f"pvc-{claim.metadata.uid}"
        spec = PersistentVolumeSpec(
            capacity={STORAGE: claim.spec.resources.requests.get(STORAGE, "0")},
            access_modes=claim.spec.access_modes,
            claim_ref=reference_to(claim),
            node_affinity=_zone_of(objects.find(Node, instruction.node_name)),
            storage_class_name=claim_class(claim),
            volume_mode=claim.spec.volume_mode,
        )
        meta = ObjectMeta(name=name, uid=name)
        yield PersistentVolume(meta, spec, PersistentVolumeStatus(_BOUND))
        yield _bound(with_selected_node(claim, instruction.node_name), name)


def _zone_of(node: Node | None) -> VolumeNodeAffinity | None:
    zone = None if node is None else node.metadata.labels.get(ZONE)
    if zone is None:
        return None
    in_zone = NodeSelectorRequirement(ZONE, "In", (zone,))
    return VolumeNodeAffinity(NodeSelector((NodeSelectorTerm(match_expressions=(in_zone,)),)))


def _bound(claim: PersistentVolumeClaim, volume_name: str) -> PersistentVolumeClaim:
    meta = claim.metadata
    annotations = {**meta.annotations, BIND_COMPLETED: "yes"}
    return replace(
        claim,
        metadata=replace(meta, annotations=annotations, resource_version=""),
        spec=replace(claim.spec, volume_name=volume_name),
        status=PersistentVolumeClaimStatus(_BOUND),
    )
