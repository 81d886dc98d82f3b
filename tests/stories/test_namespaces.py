"""Pods follow the labels of namespaces that their terms select."""

from __future__ import annotations

import pytest

from stowage.api.events import (
    AssignedPodSeen,
    Event,
    NamespaceGone,
    NamespaceSeen,
    NodeSeen,
    PendingPodSeen,
)
from stowage.api.instructions import BindPod
from stowage.api.objects.pod import Affinity, PodAffinity
from stowage.engine import Engine
from tests.support.builders import (
    affinity_term,
    label_selector,
    make_namespace,
    make_node,
    make_pod,
)
from tests.support.engines import default_engine, of_type

RED_WEBS = affinity_term(
    "kubernetes.io/hostname",
    label_selector({"app": "web"}),
    namespace_selector=label_selector({"team": "red"}),
)
AWAY_FROM_RED_WEBS = Affinity(pod_anti_affinity=PodAffinity((RED_WEBS,)))


@pytest.fixture
def engine() -> Engine:
    """One node with a pod of the red team, and a pod that keeps away from those."""
    engine = default_engine()
    web = make_pod("web", namespace="shop", labels={"app": "web"}, node="n")
    engine.handle(
        [
            NodeSeen(make_node("n")),
            NamespaceSeen(make_namespace("shop", labels={"team": "red"})),
            AssignedPodSeen(web),
            PendingPodSeen(make_pod("p", affinity=AWAY_FROM_RED_WEBS)),
        ],
        0.0,
    )
    assert of_type(BindPod, engine.schedule(0.0, 10)) == []
    return engine


@pytest.mark.parametrize(
    "event",
    [
        NamespaceSeen(make_namespace("shop", labels={"team": "blue"})),
        NamespaceGone("shop"),
    ],
    ids=["changes its labels", "is deleted"],
)
def test_a_pod_is_bound_when_the_namespace_that_repels_it(engine: Engine, event: Event) -> None:
    engine.handle([event], 60.0)
    (bind,) = of_type(BindPod, engine.schedule(60.0, 10))
    assert (bind.pod.name, bind.node_name) == ("p", "n")
    engine.validate()


@pytest.mark.parametrize(
    "event",
    [
        NamespaceSeen(make_namespace("green", labels={"team": "yellow"})),
        NamespaceGone("green"),
        NamespaceGone("unknown"),
    ],
)
def test_a_namespace_that_no_term_selects_moves_no_pod(engine: Engine, event: Event) -> None:
    engine.handle([NamespaceSeen(make_namespace("green", labels={"team": "green"}))], 60.0)
    engine.handle([event], 60.0)
    assert of_type(BindPod, engine.schedule(60.0, 10)) == []
    assert engine.pending_counts()["unschedulable"] == 1
