"""Affinity between the pods of an application."""

from __future__ import annotations

from typing import Any

from stowage.api.objects.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from tests.support.builders import ZONE, affinity_term, label_selector, make_pod

WEB = label_selector({"app": "web"})
DB = label_selector({"app": "db"})
NEAR_WEB = affinity_term(ZONE, WEB)


def near(*terms: PodAffinityTerm, preferred: tuple[WeightedPodAffinityTerm, ...] = ()) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(terms, preferred))


def far(*terms: PodAffinityTerm, preferred: tuple[WeightedPodAffinityTerm, ...] = ()) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(terms, preferred))


def web(node: str, name: str = "web-0", **fields: Any) -> Pod:
    return make_pod(name, labels={"app": "web"}, node=node, **fields)
