"""Queueing hints of InterPodAffinity: events that may make a pod it rejected schedulable.

Answers Queue wherever kube-scheduler v1.36 does. It also answers Queue in these cases, in which
v1.36 leaves a pod unschedulable until the five-minute flush:

- The labels of the rejected pod itself changed.
- A deleted pod had an anti-affinity term that matches the pod.
- The pod has no terms, so that only the anti-affinity of placed pods can have rejected it, and a
  node was added or changed its labels.
- The last placed pod that matches the pod's affinity is gone and the pod matches it itself: it may
  be the first of its group again.
- Labels of a namespace changed, which namespace selectors read.
- A term has a namespace selector: a hint does not get the labels of namespaces, so the term counts
  as matching.
"""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.framework.extension_points import EventRegistration
from stowage.state.pods.pod_info import AffinityTerm, PodInfo


def events_to_register() -> tuple[EventRegistration, ...]:
    """The events of v1.36 (added, deleted and relabelled pods and nodes), and of namespaces."""
    pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
    nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
    return (
        EventRegistration(ClusterEvent(EventResource.POD, pods), after_pod_change, per_class=True),
        EventRegistration(
            ClusterEvent(EventResource.NODE, nodes), after_node_change, per_class=True
        ),
        EventRegistration(
            ClusterEvent(EventResource.NAMESPACE, ActionType.UPDATE),
            after_namespace_change,
            per_class=True,
        ),
    )


def after_pod_change(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """``isSchedulableAfterPodChange``: Queue if a term matches the changed pod differently."""
    if old is not None and new is not None and new.uid == pod.uid:
        return QueueingHint.when(old.labels != new.labels)
    if any(each is not None and not each.node_name for each in (old, new)):
        return QueueingHint.SKIP
    terms = pod.pod_class.required_affinity_terms
    if terms and _all_match(terms, new) and not _all_match(terms, old):
        return QueueingHint.QUEUE
    if terms and _may_be_the_first_again(terms, pod, old, new):
        return QueueingHint.QUEUE
    for term in pod.pod_class.required_anti_affinity_terms:
        if _may_match(term, old) and not _may_match(term, new):
            return QueueingHint.QUEUE
    return QueueingHint.when(old is not None and new is None and _kept_away(pod, old))


def after_node_change(pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
    """``isSchedulableAfterNodeChange``: Queue if a node is new or its topology labels changed."""
    if new is None:
        return QueueingHint.SKIP
    wanted = [term.topology_key for term in pod.pod_class.required_affinity_terms]
    avoided = [term.topology_key for term in pod.pod_class.required_anti_affinity_terms]
    if not wanted and not avoided:
        return QueueingHint.QUEUE
    labels = new.metadata.labels
    if old is None:
        return QueueingHint.when(bool(avoided) or any(key in labels for key in wanted))
    before = old.metadata.labels
    gained = any(key in labels and before.get(key) != labels[key] for key in wanted)
    lost = any(key in before and labels.get(key) != before[key] for key in avoided)
    return QueueingHint.when(gained or lost)


def after_namespace_change(pod: PodInfo, old: Namespace, new: Namespace) -> QueueingHint:
    """Queue if a term of the pod selects other namespaces now, or if it is the pod's namespace."""
    if new.metadata.name == pod.namespace:
        return QueueingHint.QUEUE
    terms = (*pod.pod_class.required_affinity_terms, *pod.pod_class.required_anti_affinity_terms)
    before, after = old.metadata.labels, new.metadata.labels
    return QueueingHint.when(
        any(
            term.namespace_selector.matches(before) != term.namespace_selector.matches(after)
            for term in terms
        )
    )


def _may_be_the_first_again(
    terms: Sequence[AffinityTerm], pod: PodInfo, old: PodInfo | None, new: PodInfo | None
) -> bool:
    return _all_match(terms, old) and not _all_match(terms, new) and _all_match(terms, pod)


def _kept_away(pod: PodInfo, other: PodInfo) -> bool:
    return any(_may_match(term, pod) for term in other.pod_class.required_anti_affinity_terms)


def _all_match(terms: Sequence[AffinityTerm], other: PodInfo | None) -> bool:
    return all(_may_match(term, other) for term in terms)


def _may_match(term: AffinityTerm, other: PodInfo | None) -> bool:
    if other is None:
        return False
    possible = not term.namespace_selector.matches_nothing or other.namespace in term.namespaces
    return possible and term.selector.matches(other.labels)
