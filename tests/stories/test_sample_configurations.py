"""Every file in config/ is valid and schedules as its comments say."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stowage.api.events import NodeSeen, PendingPodSeen, WorkloadSeen
from stowage.api.instructions import BindPod, PatchPodStatus
from stowage.api.objects.meta import OwnerReference
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Affinity, Pod, PodAffinity
from stowage.cli.config_file import read_configuration
from stowage.cli.profiles import make_frameworks
from stowage.engine import make_engine
from tests.support.builders import (
    ZONE,
    affinity_term,
    label_selector,
    make_node,
    make_pod,
    weighted,
)
from tests.support.engines import of_type
from tests.support.models.engine_driver import EngineDriver

CONFIG = Path(__file__).parents[2] / "config"
WEB = OwnerReference("ReplicaSet", "web", "web-uid", "apps/v1", controller=True)
WEB_PODS = label_selector({"app": "web"})
PREFER_AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"


class SampleDriver(EngineDriver):
    """Nodes, a ReplicaSet, and an engine with the profile of one file."""

    def __init__(self, file: str, nodes: Sequence[Node]) -> None:
        frameworks = make_frameworks(read_configuration(CONFIG / file))
        super().__init__(partial(make_engine, frameworks))
        self.handle(*map(NodeSeen, nodes))
        self.handle(WorkloadSeen("ReplicaSet", "default", "web", WEB_PODS))

    def place(self, pod: Pod) -> str:
        """Schedule a pod and return its node, or the message if no node fits."""
        answer = [*self.handle(PendingPodSeen(pod)), *self.schedule(1)]
        for bind in of_type(BindPod, answer):
            return bind.node_name
        (patch,) = of_type(PatchPodStatus, answer)
        return patch.message

    def place_all(self, *pods: Pod) -> list[str]:
        """Schedule several pods one after the other."""
        return [self.place(pod) for pod in pods]


def pod(name: str, **fields: Any) -> Pod:
    return make_pod(name, cpu="100m", memory="100Mi", scheduler_name="stowage", **fields)


def web(name: str, **fields: Any) -> Pod:
    return pod(name, labels={"app": "web"}, owner=WEB, **fields)


def webs(number: int) -> list[Pod]:
    return [web(f"web-{index}") for index in range(number)]


def avoiding(node: Node, owner: OwnerReference) -> Node:
    """The node with an annotation that asks to avoid the pods of `owner`."""
    controller = {"kind": owner.kind, "uid": owner.uid, "controller": True}
    avoid = {"preferAvoidPods": [{"podSignature": {"podController": controller}}]}
    metadata = msgspec.structs.replace(
        node.metadata, annotations={PREFER_AVOID_PODS: json.dumps(avoid)}
    )
    return msgspec.structs.replace(node, metadata=metadata)


def default_spreads_over_zones_until_one_is_full() -> None:
    nodes = [make_node("a", zone="a"), make_node("b", zone="b", pods=1)]
    placed = SampleDriver("default.yaml", nodes).place_all(*webs(4))
    assert placed == ["a", "b", "a", "a"]


def bin_packing_fills_one_node_before_the_next() -> None:
    nodes = [make_node("a", pods=2), make_node("b"), make_node("c")]
    placed = SampleDriver("bin-packing.yaml", nodes).place_all(*(pod(f"p{i}") for i in range(5)))
    assert placed == ["a", "a", "b", "b", "b"]


def spread_hard_rejects_pods_that_exceed_the_skew() -> None:
    nodes = [make_node("a1", zone="a"), make_node("a2", zone="a")]
    nodes.append(make_node("b", zone="b", pods=1))
    driver = SampleDriver("spread-hard.yaml", nodes)
    assert sorted(driver.place_all(*webs(3))) == ["a1", "a2", "b"]
    assert driver.place(web("late")).startswith(
        "0/3 nodes are available: 1 Too many pods, "
        "2 node(s) didn't match pod topology spread constraints."
    )
    assert driver.place(pod("of-no-workload")) in ("a1", "a2")


def legacy_spreads_and_avoids_annotated_nodes() -> None:
    nodes = [make_node("a", zone="a"), make_node("b", zone="b")]
    nodes.append(avoiding(make_node("avoided", zone="c", cpu="64", memory="512Gi"), WEB))
    driver = SampleDriver("legacy-1.12.yaml", nodes)
    assert driver.place_all(*webs(4)) == ["a", "b", "a", "b"]
    # Only pods of the ReplicaSet avoid the emptiest node, and only while it has the annotation.
    assert driver.place(pod("of-no-workload")) == "avoided"
    driver.add_nodes("avoided", zone="c", cpu="64", memory="512Gi")
    assert driver.place(web("web-4")) == "avoided"


SCENARIOS: dict[str, Callable[[], None]] = {
    "default.yaml": default_spreads_over_zones_until_one_is_full,
    "bin-packing.yaml": bin_packing_fills_one_node_before_the_next,
    "spread-hard.yaml": spread_hard_rejects_pods_that_exceed_the_skew,
    "legacy-1.12.yaml": legacy_spreads_and_avoids_annotated_nodes,
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_a_sample_schedules_as_its_comments_say(scenario: Callable[[], None]) -> None:
    scenario()


def test_every_sample_has_a_scenario() -> None:
    assert {file.name for file in CONFIG.iterdir()} == set(SCENARIOS)


def test_the_legacy_profile_has_exactly_the_priorities_of_1_12() -> None:
    (framework,) = make_frameworks(read_configuration(CONFIG / "legacy-1.12.yaml"))
    assert framework.profile.weights == {
        "SelectorSpread": 1,
        "InterPodAffinity": 1,
        "NodeResourcesFit": 1,
        "NodeResourcesBalancedAllocation": 1,
        "NodePreferAvoidPods": 10000,
        "NodeAffinity": 1,
        "TaintToleration": 1,
    }
    assert framework.profile.percentage_of_nodes_to_score == 50


def test_in_the_legacy_profile_no_preference_outweighs_the_avoid_annotation() -> None:
    drawn = Affinity(
        pod_affinity=PodAffinity(
            preferred_during_scheduling_ignored_during_execution=(
                weighted(100, affinity_term(ZONE, label_selector({"app": "db"}))),
            )
        )
    )
    nodes = [avoiding(make_node("avoided", zone="a"), WEB), make_node("b", zone="b")]
    driver = SampleDriver("legacy-1.12.yaml", nodes)
    assert driver.place(pod("db", labels={"app": "db"}, node_selector={ZONE: "a"})) == "avoided"
    assert driver.place(pod("near-db", labels={"app": "api"}, affinity=drawn)) == "avoided"
    assert driver.place(web("web-near-db", affinity=drawn)) == "b"
