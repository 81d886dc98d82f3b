"""The labels that decide where a pod may go, so that their columns are built before its attempt."""

from __future__ import annotations

from collections.abc import Mapping

from stowage.api.objects.pod import PodSpec
from stowage.api.values.node_affinity import RequiredNodeAffinity
from stowage.state.pods.affinity_terms import AffinityTerms, TermKind


def node_labels_read(
    spec: PodSpec, terms: Mapping[TermKind, AffinityTerms], required: RequiredNodeAffinity
) -> tuple[str, ...]:
    """The labels of nodes that a pod names, each once.

    They are topology keys, and the keys of its node selector and of its node affinity.

    Args:
        spec: The pod.
        terms: Its compiled terms of pod (anti)affinity.
        required: Its compiled node selector and required node affinity.
    """
    keys = [each.topology_key for each in spec.topology_spread_constraints]
    keys += [each.topology_key for of_kind in terms.values() for each in of_kind]
    if required.node_selector is not None:
        keys += [each.key for each in required.node_selector.requirements]
    if required.terms is not None:
        keys += [each.key for term in required.terms.terms for each in term.labels]
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    preferred = affinity and affinity.preferred_during_scheduling_ignored_during_execution
    if preferred:
        keys += [each.key for term in preferred for each in term.preference.match_expressions]
    return tuple(dict.fromkeys(keys)) if keys else ()


def pod_labels_read(spec: PodSpec, terms: Mapping[TermKind, AffinityTerms]) -> tuple[str, ...]:
    """The labels of other pods that the selectors of a pod name, each once.

    Args:
        spec: The pod.
        terms: Its compiled terms of pod (anti)affinity.
    """
    keys = [
        requirement.key
        for of_kind in terms.values()
        for term in of_kind
        for requirement in term.selector.requirements
    ]
    for constraint in spec.topology_spread_constraints:
        keys += constraint.match_label_keys
        selector = constraint.label_selector
        if selector is not None:
            keys += selector.match_labels
            keys += [each.key for each in selector.match_expressions]
    return tuple(dict.fromkeys(keys)) if keys else ()
