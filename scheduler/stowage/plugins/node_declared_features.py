"""Plugin NodeDeclaredFeatures: a node must declare the kubelet features that a pod requires."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.api.objects.node import Node
from stowage.api.objects.pod import PodSpec
from stowage.api.status import SKIP
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    NoArgs,
    PluginTraits,
    PreFilterResult,
    Reads,
    Rejection,
)
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

REASON = "node(s) didn't match Pod's required features"
RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
_SKIPPED = PreFilterResult(SKIP)


class _Required(msgspec.Struct, frozen=True):
    """The features that the pod requires."""

    features: frozenset[str]


class NodeDeclaredFeatures:
    """Rejects nodes whose ``status.declaredFeatures`` lack a feature that the pod requires.

    Nodes share few distinct sets of features; each set is judged once. With the feature gate
    NodeDeclaredFeatures off, it skips every pod.
    """

    name = "NodeDeclaredFeatures"
    traits = PluginTraits(
        filter_reads=Reads.NODE,
        reads_only_node_demand=True,
        rejects_per_class=True,
        skips_per_class=True,
    )

    def __init__(self, args: NoArgs, gates: FeatureGates = DEFAULT_FEATURE_GATES) -> None:
        del args
        self._is_on = gates.enabled(self.name)

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip for pods that require no feature."""
        del snapshot
        required = required_features(pod.spec) if self._is_on else None
        if not required:
            return _SKIPPED
        state.write(_Required(required))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unresolvable where a feature is missing."""
        del pod
        required = state.read(_Required).features
        lacking = np.array(
            [not required <= (features or frozenset()) for features in nodes.snapshot.feature_sets],
            dtype=np.bool_,
        )
        rejected = lacking[nodes.feature_set]
        if not rejected.any():
            return ACCEPT_ALL
        return FilterVerdict((Rejection(REASON, rejected, unresolvable=True),))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Added nodes, changed features of nodes, and updates of the pod itself."""
        node = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
        return (
            EventRegistration(
                ClusterEvent(EventResource.NODE, node), after_node_change, per_demand=True
            ),
            EventRegistration(ClusterEvent(EventResource.POD, ActionType.UPDATE), after_pod_update),
        )


def required_features(spec: PodSpec) -> frozenset[str]:
    """The features that a pod with this spec requires (``InferForPodScheduling`` of v1.36).

    Two features count: a rule that restarts all containers, and user namespaces with the host
    network. In-place resize counts when a pod is resized, not when it is scheduled.
    """
    features = set()
    if spec.host_network and spec.host_users is False:
        features.add(USER_NAMESPACES_HOST_NETWORK)
    for container in (*spec.containers, *spec.init_containers):
        rules = container.restart_policy_rules
        if rules and any(rule.action == "RestartAllContainers" for rule in rules):
            features.add(RESTART_ALL_CONTAINERS)
    return frozenset(features)


def after_node_change(pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
    """Queue if the node is new or declares other features than before."""
    del pod
    if old is None or new is None:
        return QueueingHint.QUEUE
    return QueueingHint.when(old.status.declared_features != new.status.declared_features)


def after_pod_update(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """Queue if the pod itself requires other features than before."""
    if old is None or new is None or new.uid != pod.uid:
        return QueueingHint.SKIP
    return QueueingHint.when(required_features(old.spec) != required_features(new.spec))
