"""Plugin DynamicResources: rejects pods with resource claims, which this version cannot allocate.

Such a pod must not be placed on a node that lacks its devices. Pods without claims pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from stowage.api.config.loading import ConfigError
from stowage.api.config.types import ConfigStruct
from stowage.api.events import ActionType, ClusterEvent, EventResource
from stowage.api.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from stowage.api.values.duration import Duration
from stowage.framework import (
    CycleState,
    Diagnosis,
    EventRegistration,
    PluginTraits,
    PreFilterResult,
    Reads,
)
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

NOT_SUPPORTED = "pod uses resource claims, which this version does not allocate yet"
NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
_SKIPPED = PreFilterResult(SKIP)


class DynamicResourcesArgs(ConfigStruct, frozen=True):
    """Time limits of device allocation; accepted, without effect in this version."""

    filter_timeout: Duration = Duration(10)
    binding_timeout: Duration = Duration(600)

    def validate(self) -> Sequence[ConfigError]:
        """An error for each negative limit."""
        limits = {"filterTimeout": self.filter_timeout, "bindingTimeout": self.binding_timeout}
        return [
            ConfigError(path, limit, "0s or longer") for path, limit in limits.items() if limit < 0
        ]


class _Looked(msgspec.Struct, frozen=True):
    """Marks that PreFilter ran in this cycle."""


class DynamicResources:
    """Rejects pods with resource claims."""

    name = "DynamicResources"
    traits = PluginTraits(
        score_reads=Reads.NODE,
        reads_only_node_demand=True,
        rejects_per_class=True,
        pre_enqueue_per_class=True,
    )

    def __init__(self, args: DynamicResourcesArgs) -> None:
        del args

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Success: PreFilter judges the claims."""
        del pod
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip for pods without claims, unresolvable for pods with claims."""
        del snapshot
        state.write(_Looked())
        if pod.spec.resource_claims:
            return PreFilterResult(unresolvable(NOT_SUPPORTED))
        return _SKIPPED

    def post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis
    ) -> tuple[Status, str | None]:
        """Reject, as there is nothing to deallocate; as upstream, an error without PreFilter."""
        del pod, snapshot, diagnosis
        if state.get(_Looked) is None:
            return error("not found"), None
        return unschedulable(NOTHING_TO_DEALLOCATE), None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``, all 0: a pod without claims prefers no node."""
        del state, pod
        return np.zeros(len(nodes), dtype=np.int64)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Events that may add devices or claims."""
        add, update = ActionType.ADD, ActionType.UPDATE
        node = add | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        claim = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return tuple(
            EventRegistration(ClusterEvent(resource, action))
            for resource, action in (
                (EventResource.NODE, node),
                (EventResource.RESOURCE_CLAIM, add | update | ActionType.DELETE),
                (EventResource.POD, claim),
                (EventResource.DEVICE_CLASS, add | update),
                (EventResource.RESOURCE_SLICE, add | update),
            )
        )
