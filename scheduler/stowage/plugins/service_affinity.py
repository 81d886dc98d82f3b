"""Plugin ServiceAffinity: keeps the pods of a service together, or apart, by labels of nodes.

The predicate ``serviceAffinity`` and the priority ``serviceAntiAffinity`` of a Policy of
kube-scheduler 1.12; one plugin since 1.17.

v1.36 has no event for Services, so a changed Service does not move a pod that waits. The next event
of a pod or node that helps does, or the flush after five minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.config.loading import ConfigError
from stowage.api.config.types import ConfigStruct
from stowage.api.objects.node import Node
from stowage.api.values.selectors import Selector, key_error, selector_from_labels
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    PluginTraits,
    Rejection,
)
from stowage.framework.scores import MAX_POINTS, POINT
from stowage.framework.verdict import Int64Array
from stowage.state.arrays import Int32Array
from stowage.state.interning import ABSENT
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot
from stowage.state.workloads import Workloads

REASON = "node(s) didn't match service affinity"


class ServiceAffinityArgs(ConfigStruct, frozen=True):
    """Arguments of ServiceAffinity: ``ServiceAffinityArgs`` of kubescheduler.config.k8s.io/v1beta1.

    Attributes:
        affinity_labels: The nodes of a service's pods must have the same values of these labels.
        anti_affinity_labels_preference: The pods of a service are spread over the values of these
            labels.
    """

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each key that is invalid or given twice."""
        for field, keys in (
            ("affinityLabels", self.affinity_labels),
            ("antiAffinityLabelsPreference", self.anti_affinity_labels_preference),
        ):
            for index, key in enumerate(keys):
                if key_error(key) or key in keys[:index]:
                    yield ConfigError(f"{field}[{index}]", key, "the key of a label, given once")


class ServiceAffinity:
    """Filters by the labels of the nodes of a service's pods, and scores by their spreading."""

    name = "ServiceAffinity"
    traits = PluginTraits(rejects_per_class=True)

    def __init__(self, args: ServiceAffinityArgs) -> None:
        self._args = args

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Reject nodes whose labels differ from the values that the pod's service has chosen."""
        del state
        if not self._args.affinity_labels:
            return ACCEPT_ALL
        rejected = np.zeros(len(nodes), dtype=np.bool_)
        for key, value in self._wanted_labels(pod, nodes.snapshot).items():
            code = nodes.snapshot.label_column(key).values.get(value)
            rejected |= nodes.label_codes(key) != code if code != ABSENT else True
        return FilterVerdict((Rejection(REASON, rejected),)) if rejected.any() else ACCEPT_ALL

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: pods on the node that the pod's first service selects.

        The first service is the one whose name sorts first; 1.12 takes any. Pods that are being
        deleted do not count.
        """
        del state
        selector = next(service_selectors(pod, nodes.snapshot.workloads), None)
        if selector is None:
            return np.zeros(len(nodes), dtype=np.int64)
        counts = nodes.snapshot.pods.count_matching(
            selector, frozenset((pod.namespace,)), skip_terminating=True
        )
        return nodes.take(counts.per_node)

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """The mean of the points of each label, times 10 and cut; see `spreading_points`.

        Each label was a priority of its own in 1.12: the weight of this plugin is the sum of their
        weights, which have to be equal.
        """
        del state, pod
        keys = self._args.anti_affinity_labels_preference
        points = np.zeros(len(nodes), dtype=np.int64)
        for key in keys:
            points += spreading_points(scores, nodes.label_codes(key))
        return points * POINT // max(len(keys), 1)

    def _wanted_labels(self, pod: PodInfo, snapshot: Snapshot) -> Mapping[str, str]:
        """The labels that a node must have (``checkServiceAffinity`` of 1.12).

        Those of the pod's ``nodeSelector``; the others are taken from the first node that has a
        pod of the namespace with all labels of this pod, if a service selects this pod.
        """
        chosen = pod.spec.node_selector or {}
        wanted = {key: chosen[key] for key in self._args.affinity_labels if key in chosen}
        if len(wanted) == len(self._args.affinity_labels):
            return wanted
        if next(service_selectors(pod, snapshot.workloads), None) is None:
            return wanted
        alike = snapshot.pods.count_matching(
            selector_from_labels(pod.labels), frozenset((pod.namespace,)), skip_terminating=False
        )
        (rows,) = ((alike.per_node > 0) & snapshot.exists).nonzero()
        node = snapshot.node(int(rows[0])) if len(rows) else None
        if node is not None:
            labels = node.metadata.labels
            more = (key for key in self._args.affinity_labels if key in labels)
            wanted = {key: labels[key] for key in more} | wanted
        return wanted

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Changed nodes, and changed pods with the labels of the pod."""
        nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL
        pods = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL
        return (
            EventRegistration(
                ClusterEvent(EventResource.NODE, nodes), self.after_node_change, per_class=True
            ),
            EventRegistration(
                ClusterEvent(EventResource.POD, pods), after_pod_change, per_class=True
            ),
        )

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """Queue if a node was added or removed, or one of the affinity labels changed."""
        del pod
        if old is None or new is None:
            return QueueingHint.QUEUE
        before, after = old.metadata.labels, new.metadata.labels
        changed = any(before.get(key) != after.get(key) for key in self._args.affinity_labels)
        return QueueingHint.when(changed)


def after_pod_change(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """Queue if the pod itself has new labels, or a placed pod has, or had, all its labels."""
    if new is not None and new.uid == pod.uid:
        return QueueingHint.QUEUE
    return QueueingHint.when(
        any(
            each.node_name
            and each.namespace == pod.namespace
            and pod.labels.items() <= each.labels.items()
            for each in (old, new)
            if each is not None
        )
    )


def service_selectors(pod: PodInfo, workloads: Workloads) -> Iterator[Selector]:
    """The selectors of the services that select a pod, by name (``GetPodServices`` of 1.12)."""
    for _, written in sorted(workloads.in_namespace("Service", pod.namespace).items()):
        if written is None or not written.match_labels:
            continue
        if written.match_labels.items() <= pod.labels.items():
            yield selector_from_labels(written.match_labels)


def spreading_points(counts: Int64Array, codes: Int32Array) -> Int64Array:
    """Points for nodes with a label, the more the fewer pods there are with its value.

    ``10 * ((all - with this value) / all)``, cut, in float64; 10 if there is no pod, and 0 for
    nodes without the label (``CalculateAntiAffinityPriorityReduce`` of 1.12).

    Args:
        counts: ``int64[nodes]``, pods of the service on each node.
        codes: ``int32[nodes]``, the value of the label on each node; -1 without it.

    Returns:
        ``int64[nodes]`` in 0..10.

    Examples:
        Of 5 pods, 3 have the first value, 1 has the second, 1 is on a node without the label:

        >>> spreading_points(np.array([2, 1, 1, 1]), np.array([0, 0, 1, -1])).tolist()
        [4, 4, 8, 0]
    """
    labelled = codes != ABSENT
    points = np.where(labelled, MAX_POINTS, 0)
    total = int(counts.sum())
    if total and labelled.any():
        per_value = np.bincount(codes[labelled], weights=counts[labelled])
        shares = float(MAX_POINTS) * ((total - per_value) / float(total))
        points[labelled] = shares.astype(np.int64)[codes[labelled]]
    return points
