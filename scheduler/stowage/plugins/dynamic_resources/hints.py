"""Queueing hints of DynamicResources: events that may make a pod it rejected schedulable."""

from __future__ import annotations

from collections.abc import Callable

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.device import ResourceClaim
from stowage.framework import EventRegistration
from stowage.plugins.dynamic_resources.pod_claims import ClaimProblem, pod_claims
from stowage.state.devices.devices import Devices
from stowage.state.pods.pod_info import PodInfo


class ClaimHints:
    """The hints, which look up the claims of pods.

    Args:
        devices: Returns the claims as they are now.
    """

    def __init__(self, devices: Callable[[], Devices]) -> None:
        self._devices = devices

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """Events that may add devices or claims, or free devices."""
        add, update = ActionType.ADD, ActionType.UPDATE
        node = add | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        registered = (
            (EventResource.NODE, node, None),
            (EventResource.RESOURCE_CLAIM, add | update, self.after_claim_change),
            (EventResource.POD, generated, self.after_pod_change),
            (EventResource.DEVICE_CLASS, add | update, None),
            (EventResource.RESOURCE_SLICE, add | update, None),
        )
        return tuple(
            EventRegistration(ClusterEvent(resource, action), hint)
            for resource, action, hint in registered
        )

    def after_claim_change(
        self, pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim
    ) -> QueueingHint:
        """Queue if devices were freed, or the status of one of the pod's claims changed."""
        try:
            claims = pod_claims(pod, self._devices())
        except ClaimProblem:
            return QueueingHint.SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return QueueingHint.QUEUE
        if all(each.metadata.uid != new.metadata.uid for each in claims):
            return QueueingHint.SKIP
        return QueueingHint.when(old is None or old.status != new.status)

    def after_pod_change(
        self, pod: PodInfo, _old: PodInfo | None, new: PodInfo | None
    ) -> QueueingHint:
        """Queue if the pod's own claims are all there now."""
        if new is None or new.uid != pod.uid:
            return QueueingHint.SKIP
        try:
            pod_claims(new, self._devices())
        except ClaimProblem:
            return QueueingHint.SKIP
        return QueueingHint.QUEUE
