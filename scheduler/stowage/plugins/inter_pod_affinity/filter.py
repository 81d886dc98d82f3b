"""Filter of InterPodAffinity: three reasons, of which the first that applies counts."""

from __future__ import annotations

import numpy as np

from stowage.framework.verdict import ACCEPT_ALL, BoolArray, FilterVerdict, Rejection
from stowage.plugins.inter_pod_affinity.pre_filter import DomainsByKey, FilterState
from stowage.state.snapshot import NodeView

AFFINITY_RULES = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY_RULES = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY_RULES = "node(s) didn't satisfy existing pods anti-affinity rules"


def required_terms_verdict(state: FilterState, nodes: NodeView) -> FilterVerdict:
    """The verdict about all nodes, by the counts of PreFilter.

    In the order of v1.36, a node fails the pod's affinity (unresolvable), else its anti-affinity,
    else the anti-affinity of placed pods.
    """
    return first_that_applies(
        _unlike(state, nodes),
        _within(state.far, nodes),
        _within(_without(state.kept_away, state.far), nodes),
    )


def first_that_applies(
    unlike: BoolArray | None, far: BoolArray | None, kept_away: BoolArray | None
) -> FilterVerdict:
    """The verdict of three masks, ``bool[nodes]``; each node gets the first reason that applies."""
    rejections: list[Rejection] = []
    taken: BoolArray | None = None
    for reason, mask, unresolvable in (
        (AFFINITY_RULES, unlike, True),
        (ANTI_AFFINITY_RULES, far, False),
        (EXISTING_ANTI_AFFINITY_RULES, kept_away, False),
    ):
        if mask is None:
            continue
        mine = mask if taken is None else mask & ~taken
        taken = mask if taken is None else taken | mask
        if mine.any():
            rejections.append(Rejection(reason, mine, unresolvable))
    return FilterVerdict(tuple(rejections)) if rejections else ACCEPT_ALL


def _unlike(state: FilterState, nodes: NodeView) -> BoolArray | None:
    """Nodes whose domains lack a pod that matches, or that lack a topology label."""
    satisfied: BoolArray | None = None
    for key, domains in state.near.items():
        wanted = domains
        if state.first_of_its_kind:
            wanted = np.arange(len(domains)) < len(domains) - 1
        if wanted[:-1].all() and nodes.snapshot.all_have_label(key):
            continue
        mask = nodes.by_label(key, wanted)
        satisfied = mask if satisfied is None else satisfied & mask
    return None if satisfied is None else np.logical_not(satisfied)


def _within(domains_by_key: DomainsByKey, nodes: NodeView) -> BoolArray | None:
    """Nodes in one of the domains."""
    hit: BoolArray | None = None
    for key, domains in domains_by_key.items():
        mask = nodes.by_label(key, domains)
        hit = mask if hit is None else hit | mask
    return hit


def _without(domains_by_key: DomainsByKey, others: DomainsByKey) -> DomainsByKey:
    """The domains that are not among others: a node in one of those has its reason already."""
    left = {}
    for key, domains in domains_by_key.items():
        other = others.get(key)
        new = domains if other is None else domains & ~other
        if new.any():
            left[key] = new
    return left
