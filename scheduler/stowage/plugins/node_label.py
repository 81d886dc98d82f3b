"""Plugin NodeLabel: filters and scores nodes by the presence of labels, whatever their values.

The predicate ``labelsPresence`` and the priority ``labelPreference`` of a Policy of kube-scheduler
1.12; a plugin since 1.17.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.config.loading import ConfigError
from stowage.api.config.types import ConfigStruct
from stowage.api.objects.node import Node
from stowage.api.values.selectors import key_error
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    PluginTraits,
    Reads,
    Rejection,
)
from stowage.framework.scores import MAX_NODE_SCORE
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

REASON = "node(s) didn't have the requested labels"


class NodeLabelArgs(ConfigStruct, frozen=True):
    """Arguments of NodeLabel: ``NodeLabelArgs`` of kubescheduler.config.k8s.io/v1beta1.

    Attributes:
        present_labels: A node must have all of them.
        absent_labels: A node must have none of them.
        present_labels_preference: Nodes that have them are preferred.
        absent_labels_preference: Nodes without them are preferred.
    """

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each key that is invalid, or both present and absent."""
        yield from _key_errors("", self.present_labels, self.absent_labels)
        preferred, avoided = self.present_labels_preference, self.absent_labels_preference
        yield from _key_errors("Preference", preferred, avoided)


class NodeLabel:
    """Rejects or scores down nodes that lack labels, or have labels, of the arguments."""

    name = "NodeLabel"
    traits = PluginTraits(
        filter_reads=Reads.NODE,
        score_reads=Reads.NODE,
        reads_only_node_demand=True,
        rejects_per_class=True,
    )

    def __init__(self, args: NodeLabelArgs) -> None:
        self._args = args

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unresolvable where a label is missing, or where there is one that must be absent."""
        del state, pod
        rejected = np.zeros(len(nodes), dtype=np.bool_)
        for key in self._args.present_labels:
            rejected |= ~_has(nodes, key)
        for key in self._args.absent_labels:
            rejected |= _has(nodes, key)
        if not rejected.any():
            return ACCEPT_ALL
        return FilterVerdict((Rejection(REASON, rejected, unresolvable=True),))

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: the share of preferences that a node meets, 0..100, cut.

        Each preference was a priority of its own in 1.12: the weight of this plugin is the sum of
        their weights, which have to be equal (``NodeLabel.Score`` of 1.17).
        """
        del state, pod
        preferred, avoided = (
            self._args.present_labels_preference,
            self._args.absent_labels_preference,
        )
        met = np.zeros(len(nodes), dtype=np.int64)
        for key in preferred:
            met += _has(nodes, key)
        for key in avoided:
            met += ~_has(nodes, key)
        scores: Int64Array = met * MAX_NODE_SCORE // max(len(preferred) + len(avoided), 1)
        return scores

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Added nodes, and changed labels of nodes."""
        event = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return (EventRegistration(event, self.after_node_change, per_demand=True),)

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """Queue if the node has the right labels, and is new or did not have them before."""
        del pod
        was_right = old is not None and self._accepts(old)
        return QueueingHint.when(new is not None and not was_right and self._accepts(new))

    def _accepts(self, node: Node) -> bool:
        labels = node.metadata.labels
        return all(
            (key in labels) == wanted
            for key, wanted in chain(
                ((key, True) for key in self._args.present_labels),
                ((key, False) for key in self._args.absent_labels),
            )
        )


def _key_errors(
    suffix: str, present: Sequence[str], absent: Sequence[str]
) -> Iterator[ConfigError]:
    for field, keys in (("presentLabels", present), ("absentLabels", absent)):
        for index, key in enumerate(keys):
            if key_error(key):
                yield ConfigError(f"{field}{suffix}[{index}]", key, "the key of a label")
    for index, key in enumerate(absent):
        if key in present:
            expectation = f"a label that is not in presentLabels{suffix}"
            yield ConfigError(f"absentLabels{suffix}[{index}]", key, expectation)


def _has(nodes: NodeView, key: str) -> BoolArray:
    """``bool[nodes]``: nodes that have a label."""
    has: BoolArray = nodes.label_codes(key) >= 0
    return has
