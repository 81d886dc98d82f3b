"""Queueing hints of PodTopologySpread: events that may make a pod it rejected schedulable.

Follows kube-scheduler v1.36. The selector of default constraints depends on services and owners,
which a hint does not get: for a pod with default constraints only, any placed pod of its namespace
counts as matching.
"""

from __future__ import annotations

from functools import partial

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.node import Node
from stowage.framework.extension_points import EventRegistration
from stowage.plugins.pod_topology_spread.args import DO_NOT_SCHEDULE
from stowage.plugins.pod_topology_spread.constraints import Constraints, ConstraintsOf
from stowage.state.pods.pod_info import PodInfo


def events_to_register(constraints_of: ConstraintsOf) -> tuple[EventRegistration, ...]:
    """The events of v1.36: added, deleted and changed pods and nodes."""
    pods = (
        ActionType.ADD
        | ActionType.UPDATE_POD_LABEL
        | ActionType.UPDATE_POD_TOLERATION
        | ActionType.DELETE
    )
    nodes = (
        ActionType.ADD
        | ActionType.DELETE
        | ActionType.UPDATE_NODE_LABEL
        | ActionType.UPDATE_NODE_TAINT
    )
    return (
        EventRegistration(
            ClusterEvent(EventResource.POD, pods),
            partial(after_pod_change, constraints_of),
            per_class=True,
        ),
        EventRegistration(
            ClusterEvent(EventResource.NODE, nodes),
            partial(after_node_change, constraints_of),
            per_class=True,
        ),
    )


def after_pod_change(
    constraints_of: ConstraintsOf, pod: PodInfo, old: PodInfo | None, new: PodInfo | None
) -> QueueingHint:
    """``isSchedulableAfterPodChange``: Queue if a pod that matches a constraint changed."""
    if any(each is not None and not _is_involved(each, pod) for each in (old, new)):
        return QueueingHint.SKIP
    constraints = constraints_of.own(pod, DO_NOT_SCHEDULE)
    if old is not None and new is not None:
        return QueueingHint.when(_update_matters(constraints_of, constraints, pod, (old, new)))
    present = new or old
    labels = present.labels if present is not None else {}
    return QueueingHint.when(
        _has_only_defaults(constraints_of, pod)
        or any(constraint.selector.matches(labels) for constraint in constraints)
    )


def after_node_change(
    constraints_of: ConstraintsOf, pod: PodInfo, old: Node | None, new: Node | None
) -> QueueingHint:
    """``isSchedulableAfterNodeChange``: Queue if a node joins, leaves or changes a domain."""
    keys = constraints_of.topology_keys(pod, DO_NOT_SCHEDULE)
    before = None if old is None else _values(old, keys)
    after = None if new is None else _values(new, keys)
    if old is None or new is None:
        return QueueingHint.when(before is not None or after is not None)
    if before is None or after is None:
        return QueueingHint.when(before is not after)
    return QueueingHint.when(before != after or old.spec.taints != new.spec.taints)


def _update_matters(
    constraints_of: ConstraintsOf,
    constraints: Constraints,
    pod: PodInfo,
    change: tuple[PodInfo, PodInfo],
) -> bool:
    old, new = change
    tolerates_others = new.uid == pod.uid and old.spec.tolerations != new.spec.tolerations
    if tolerates_others and constraints_of.honors_taints(pod, DO_NOT_SCHEDULE):
        return True
    if old.labels == new.labels:
        return False
    return _has_only_defaults(constraints_of, pod) or any(
        constraint.selector.matches(old.labels) != constraint.selector.matches(new.labels)
        for constraint in constraints
    )


def _is_involved(changed: PodInfo, pod: PodInfo) -> bool:
    if changed.uid == pod.uid:
        return True
    return bool(changed.node_name) and changed.namespace == pod.namespace


def _has_only_defaults(constraints_of: ConstraintsOf, pod: PodInfo) -> bool:
    own = pod.spec.topology_spread_constraints
    return not own and constraints_of.has_defaults(DO_NOT_SCHEDULE)


def _values(node: Node, keys: tuple[str, ...]) -> tuple[str, ...] | None:
    """The node's values of the topology keys; None if it lacks one."""
    labels = node.metadata.labels
    if any(key not in labels for key in keys):
        return None
    return tuple(labels[key] for key in keys)
