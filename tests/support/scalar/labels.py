"""Label selectors, node selectors and tolerations for one object at a time, in plain Python.

Written from the API's rules and without `stowage.api.values.selectors`, so that a
mistake there shows as a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.node import Node, NodeSelectorRequirement, NodeSelectorTerm, Taint
from stowage.api.objects.pod import PodSpec, Toleration


def requirement_holds(
    operator: str, values: Sequence[str], key: str, labels: Mapping[str, str]
) -> bool:
    """One expression of a label or node selector."""
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if key not in labels or not _is_int(labels[key]) or not _is_int(values[0]):
        return False
    number, bound = int(labels[key]), int(values[0])
    return number > bound if operator == "Gt" else number < bound


def _is_int(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """``metav1.LabelSelectorAsSelector(selector).Matches(labels)``: None selects nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(
        requirement_holds(wanted.operator, wanted.values, wanted.key, labels)
        for wanted in selector.match_expressions
    )


def is_empty(selector: LabelSelector | None) -> bool:
    """Whether the selector exists and has no requirements."""
    return selector is not None and not selector.match_labels and not selector.match_expressions


def matches_required_node_affinity(spec: PodSpec, node: Node) -> bool:
    """The pod's nodeSelector and its required node affinity."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return True
    return any(term_matches(term, node) for term in required.node_selector_terms)


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """One node selector term; an empty one matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return _all_hold(term.match_expressions, node.metadata.labels) and _all_hold(
        term.match_fields, fields
    )


def _all_hold(wanted: Sequence[NodeSelectorRequirement], labels: Mapping[str, str]) -> bool:
    """Whether all expressions hold."""
    return all(requirement_holds(one.operator, one.values, one.key, labels) for one in wanted)


def tolerates_scheduling_taints(tolerations: Sequence[Toleration], node: Node) -> bool:
    """Whether every NoSchedule and NoExecute taint of the node is tolerated."""
    return all(
        any(tolerates_taint(toleration, taint) for toleration in tolerations)
        for taint in node.spec.taints
        if taint.effect in ("NoSchedule", "NoExecute")
    )


def tolerates_taint(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration tolerates one taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
