"""Volumes and claims that are free again because the attempt that took them has failed.

kube-scheduler has no event for it: a pod that found these volumes taken, or its shared claim bound
for another node, waits for the flush of unschedulable pods after five minutes. Here it is as if the
volumes and claims had been updated.
"""

from __future__ import annotations

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.engine.state.bindings import BindingCycle
from stowage.engine.state.engine_state import EngineState

_VOLUME_UPDATE = ClusterEvent(EventResource.PERSISTENT_VOLUME, ActionType.UPDATE)
_CLAIM_UPDATE = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.UPDATE)


def move_pods_to_freed_volumes(state: EngineState, cycle: BindingCycle, now: float) -> None:
    """Requeue the pods that volumes and claims may help, once they are no longer assumed.

    What the shell has written already stays as it is.
    """
    storage = state.cache.snapshot().storage
    for plan in cycle.reserve_plans.values():
        for volume in plan.volumes:
            freed = storage.volumes.get(volume.metadata.name)
            if freed is not None and freed.spec.claim_ref != volume.spec.claim_ref:
                state.queue.move_on_event(_VOLUME_UPDATE, volume, freed, now)
        for claim in plan.claims:
            given_back = storage.claims.get(claim.metadata.namespaced_name)
            if given_back is not None and (
                given_back.metadata.annotations != claim.metadata.annotations
            ):
                state.queue.move_on_event(_CLAIM_UPDATE, claim, given_back, now)
