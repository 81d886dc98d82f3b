"""One pod as the scheduler remembers it: who it is, and the class that says the rest."""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern

import msgspec
from msgspec.structs import astuple

from stowage.api.decoding.errors import require_identity
from stowage.api.instructions import PodReference
from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import Pod, PodResourceClaimStatus, PodSpec
from stowage.api.objects.volume import Volume
from stowage.state.pods.affinity_terms import AffinityTerm, TermKind
from stowage.state.pods.pod_class import PodClass, PodClasses

__all__ = ["AffinityTerm", "PodClass", "PodClasses", "PodInfo", "TermKind", "make_pod_info"]

#: The last field; those between it and the name are sources that scheduling reads.
_IMAGE = Volume.__struct_fields__.index("image")
_NO_SOURCES = (None,) * (_IMAGE - 1)


#: The condition that says why a pod goes, and its reason where a scheduler wants it gone.
DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"


class PodInfo(msgspec.Struct, frozen=True, gc=False):
    """A pod; immutable, so an update is another PodInfo.

    Attributes:
        uid: Tells two pods of one name apart.
        node_name: The node it is, or is assumed to be, on; empty while pending.
        pod_class: Everything that pods of one template have in common.
        start_time: When the kubelet acknowledged it; RFC 3339 in UTC with whole seconds, as the
            API server writes it, so that comparing texts compares times.
        creation_timestamp: When it was created, in the same form.
        terminating: Whether it has a deletion timestamp.
        nominated_node_name: Where preemption has made room for it.
        generation: Of the object's spec.
        resource_claim_statuses: The claims made for its ``spec.resourceClaims``.
        is_leaving_for_preemption: Whether it is terminating because a scheduler preempted it.
        volumes: Its volumes as far as scheduling reads them. They are not part of the class: the
            pods of a StatefulSet differ in nothing but their claims.
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

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def reference(self) -> PodReference:
        """The pod as instructions name it."""
        return PodReference(self.namespace, self.name, self.uid)

    @property
    def labels(self) -> dict[str, str]:
        """The pod's labels."""
        return self.pod_class.labels

    @property
    def spec(self) -> PodSpec:
        """The pod's spec as its class has it: without node name and volumes other than images."""
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
        """The same pod, on that node; an empty name takes it off."""
        return msgspec.structs.replace(self, node_name=node_name)


def make_pod_info(pod: Pod, classes: PodClasses) -> PodInfo:
    """Take from a pod what the scheduler remembers.

    Raises:
        InvalidObject: A field that scheduling reads cannot be understood; it names the field.
    """
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    if not (metadata.uid and metadata.name):
        require_identity("Pod", metadata.namespaced_name, metadata.name, metadata.uid)
    terminating = metadata.deletion_timestamp is not None
    pod_class = classes.class_of(pod)
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
    )


def _is_read(volume: Volume) -> bool:
    """Whether scheduling reads anything of a volume besides its image."""
    return astuple(volume)[1:_IMAGE] != _NO_SOURCES


def _is_preempted(conditions: Sequence[Condition]) -> bool:
    """``podTerminatingByPreemption`` of v1.36, but for the deletion timestamp."""
    for condition in conditions:
        if condition.type == DISRUPTION_TARGET:
            return condition.status == "True" and condition.reason == PREEMPTION_BY_SCHEDULER
    return False
