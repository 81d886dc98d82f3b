"""Which events may make a pod schedulable that InterPodAffinity rejected.

Follows kube-scheduler v1.36 where it answers Queue and is more generous where it forgets a pod
until the five-minute flush:

- the rejected pod's own labels changed;
- a deleted pod carried the anti-affinity that kept the pod away;
- a pod without terms, which only others' anti-affinity can have kept away, and a node came or
  changed labels;
- the last pod to be near is gone, and the pod is one to be near itself: it may be the first;
- labels of namespaces changed, which namespace selectors go by;
- a term has a namespace selector (no labels of namespaces are at hand here, so it counts as
  matching).
"""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.framework.extension_points import EventRegistration
from stowage.state.pods.pod_info import AffinityTerm, PodInfo


def events_to_register() -> tuple[EventRegistration, ...]:
    """Those of v1.36, pods and nodes that come, go or change labels, and those of namespaces."""
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
    """``isSchedulableAfterPodChange``: a placed pod now helps or no longer hinders `pod`."""
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
    """``isSchedulableAfterNodeChange``: a node came, or its topology labels changed."""
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
    """A term of the pod selects other namespaces now, or others' may select the pod's own."""
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


def _kept_away(pod: PodInfo, carrier: PodInfo) -> bool:
    return any(_may_match(term, pod) for term in carrier.pod_class.required_anti_affinity_terms)


def _all_match(terms: Sequence[AffinityTerm], other: PodInfo | None) -> bool:
    return all(_may_match(term, other) for term in terms)


def _may_match(term: AffinityTerm, other: PodInfo | None) -> bool:
    if other is None:
        return False
    possible = not term.namespace_selector.matches_nothing or other.namespace in term.namespaces
    return possible and term.selector.matches(other.labels)
