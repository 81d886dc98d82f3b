"""A pod as the scheduler stores it: its identity and its equivalence class."""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern

import msgspec
from msgspec.structs import astuple

from stowage.api.decoding.errors import require_identity
from stowage.api.instructions import PodReference
from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import (
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
    PodSpec,
)
from stowage.api.objects.pod_groups import member_of
from stowage.api.objects.volume import Volume
from stowage.api.values.reserved_annotations import ReservedAnnotations, reserved_annotations
from stowage.state.pods.affinity_terms import AffinityTerm, TermKind
from stowage.state.pods.pod_class import PodClass, PodClasses

__all__ = ["AffinityTerm", "PodClass", "PodClasses", "PodInfo", "TermKind", "make_pod_info"]

#: The last field of a volume; those between it and the name are sources that scheduling reads.
_IMAGE = Volume.__struct_fields__.index("image")
_NO_SOURCES = (None,) * (_IMAGE - 1)


#: The condition of a pod that will be deleted, and its reason if a scheduler preempted the pod.
DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"


class PodInfo(msgspec.Struct, frozen=True, gc=False):
    """A pod; immutable, so an update is another PodInfo.

    Attributes:
        uid: Distinguishes pods of the same name.
        node_name: The node of the pod, bound or assumed; empty while pending.
        pod_class: The equivalence class.
        start_time: When the kubelet acknowledged it: RFC 3339 in UTC with whole seconds, so that
            comparing texts compares times.
        creation_timestamp: When it was created, in the same form.
        terminating: Whether it has a deletion timestamp.
        nominated_node_name: ``status.nominatedNodeName``.
        generation: ``metadata.generation``.
        resource_claim_statuses: The claims made for its ``spec.resourceClaims``.
        is_leaving_for_preemption: Whether it is terminating because a scheduler preempted it.
        volumes: The volumes that scheduling reads. They are not part of the class: the pods of a
            StatefulSet differ only in their claims.
        group: The name of its pod group; empty without one. It is not part of the class either:
            equal gangs differ only in it.
        group_source: The API group by which it names that group.
        reserved: The annotations with the prefix ``reserved.stowage/``, by which Reserve plugins
            note what the pod takes of its node.
        extended_claim_status: The claim made for its extended resources.
    """

    uid: str
    namespace: str
    name: str
    node_name: str
    pod_class: PodClass
    start_time: str | None = None
    creation_timestamp: str | None = None
    terminating: bool = False
    nominated_node_name: str = ""
    resource_version: str = ""
    phase: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    is_leaving_for_preemption: bool = False
    volumes: tuple[Volume, ...] = ()
    generation: int = 0
    group: str = ""
    group_source: str = ""
    reserved: ReservedAnnotations = ()
    extended_claim_status: PodExtendedResourceClaimStatus | None = None

    @property
    def group_key(self) -> str:
        """``namespace/name`` of its pod group; empty without one."""
        return f"{self.namespace}/{self.group}" if self.group else ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def reference(self) -> PodReference:
        """The reference to the pod in instructions."""
        return PodReference(self.namespace, self.name, self.uid)

    @property
    def labels(self) -> dict[str, str]:
        """The pod's labels."""
        return self.pod_class.labels

    @property
    def spec(self) -> PodSpec:
        """The spec of the class: without node name, group, and volumes other than images."""
        return self.pod_class.spec

    @property
    def priority(self) -> int:
        """The pod's priority."""
        return self.pod_class.priority

    @property
    def requests(self) -> dict[str, int]:
        """Resource name -> amount; cpu in milli units, the rest in whole units."""
        return self.pod_class.requests

    @property
    def scheduler_name(self) -> str:
        """The profile that schedules the pod."""
        return self.pod_class.spec.scheduler_name

    def on_node(self, node_name: str) -> PodInfo:
        """A copy on another node; an empty name stands for no node."""
        return msgspec.structs.replace(self, node_name=node_name)


def make_pod_info(pod: Pod, classes: PodClasses) -> PodInfo:
    """Extract what the scheduler stores of a pod.

    Raises:
        InvalidObject: A field that scheduling reads is invalid; it names the field.
    """
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    if not (metadata.uid and metadata.name):
        require_identity("Pod", metadata.namespaced_name, metadata.name, metadata.uid)
    terminating = metadata.deletion_timestamp is not None
    pod_class = classes.class_of(pod)
    group, group_source = member_of(pod)
    return PodInfo(
        metadata.uid,
        pod_class.namespace,
        metadata.name,
        intern(spec.node_name),
        pod_class,
        status.start_time,
        metadata.creation_timestamp,
        terminating,
        status.nominated_node_name,
        metadata.resource_version,
        intern(status.phase),
        status.resource_claim_statuses,
        terminating and _is_preempted(status.conditions),
        tuple(filter(_is_read, spec.volumes)) if spec.volumes else (),
        metadata.generation,
        intern(group),
        group_source if group else "",
        reserved_annotations(metadata.annotations) if metadata.annotations else (),
        status.extended_resource_claim_status,
    )


def _is_read(volume: Volume) -> bool:
    """Whether scheduling reads a field of the volume other than its image."""
    return astuple(volume)[1:_IMAGE] != _NO_SOURCES


def _is_preempted(conditions: Sequence[Condition]) -> bool:
    """``podTerminatingByPreemption`` of v1.36, without the deletion timestamp."""
    for condition in conditions:
        if condition.type == DISRUPTION_TARGET:
            return condition.status == "True" and condition.reason == PREEMPTION_BY_SCHEDULER
    return False
