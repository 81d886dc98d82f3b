"""Every file in config/ is valid and schedules as its comments say."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from stowage.api.config.types import KubeSchedulerConfiguration
from stowage.api.events import NodeSeen, PendingPodSeen, WorkloadSeen
from stowage.api.instructions import BindPod, ConsultExtenders, PatchPodStatus
from stowage.api.objects.meta import Condition, OwnerReference
from stowage.api.objects.node import Node
from stowage.api.objects.pod import (
    Affinity,
    Container,
    Pod,
    PodAffinity,
    ResourceRequirements,
)
from stowage.cli.config_file import read_configuration
from stowage.cli.main import app
from stowage.cli.policy_file import provider_configuration, read_policy
from stowage.cli.profiles import make_extenders, make_frameworks
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


def read_sample(file: str) -> KubeSchedulerConfiguration:
    """The configuration of a sample, which may be a Policy."""
    path = CONFIG / file
    return read_policy(path) if path.suffix == ".json" else read_configuration(path)


class SampleDriver(EngineDriver):
    """Nodes, a ReplicaSet, and an engine with the profile of one file."""

    def __init__(self, file: str, nodes: Sequence[Node]) -> None:
        configuration = read_sample(file)
        engine = partial(
            make_engine,
            make_frameworks(configuration),
            extenders=make_extenders(configuration),
        )
        super().__init__(engine)
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
    large = make_pod("of-no-workload", cpu="1", memory="1Gi", scheduler_name="stowage")
    assert driver.place(large) == "avoided"
    driver.add_nodes("avoided", zone="c", cpu="64", memory="512Gi")
    assert driver.place(web("web-4")) == "avoided"


def cluster_autoscaler_fills_one_node_before_the_next() -> None:
    nodes = [make_node("a", cpu="1", pods=2), make_node("b", cpu="1"), make_node("c", cpu="1")]
    driver = SampleDriver("cluster-autoscaler-provider.yaml", nodes)
    halves = [make_pod(f"p{i}", cpu="250m", memory="8Gi", scheduler_name="stowage") for i in "0123"]
    assert driver.place_all(*halves) == ["a", "a", "b", "b"]


def aged_priorities_let_an_hour_outweigh_a_thousand_points() -> None:
    driver = SampleDriver("aged-priorities.yaml", [make_node("a")])
    now = "2026-01-01T01:00:00Z"
    for name, priority, created in (
        ("new-1100", 1100, now),
        ("new-900", 900, now),
        ("an-hour-old", 0, "2026-01-01T00:00:00Z"),
    ):
        driver.handle(PendingPodSeen(pod(name, priority=priority, created=created)))
    bound = [each.pod.name for each in of_type(BindPod, driver.schedule())]
    assert bound == ["new-1100", "an-hour-old", "new-900"]


def requested_to_capacity_fills_to_seventy_percent() -> None:
    nodes = [make_node("a", cpu="10", memory="10Gi"), make_node("b", cpu="10", memory="10Gi")]
    driver = SampleDriver("requested-to-capacity.yaml", nodes)

    def place(name: str, cpu: int) -> str:
        size, memory = str(cpu), f"{cpu}Gi"
        return driver.place(make_pod(name, cpu=size, memory=memory, scheduler_name="stowage"))

    first = place("to-30-percent", 3)
    assert [place("to-50-percent", 2), place("to-70-percent", 2)] == [first, first]
    assert place("beyond", 3) != first


def gpu_packing_leaves_whole_nodes_free() -> None:
    present, gpus = {"nvidia.com/gpu.present": "true"}, {"nvidia.com/gpu": "4"}
    nodes = [make_node(name, labels=present, allocatable=gpus) for name in ("g1", "g2")]
    nodes += [make_node("c1"), make_node("c2")]
    driver = SampleDriver("gpu-packing.yaml", nodes)

    def training(name: str, number: int) -> Pod:
        limited = ResourceRequirements(
            {"cpu": "100m", "memory": "100Mi", "nvidia.com/gpu": str(number)},
            {"nvidia.com/gpu": str(number)},
        )
        container = Container("c", resources=limited)
        return make_pod(
            name,
            labels={"app": "web"},
            owner=WEB,
            containers=(container,),
            scheduler_name="stowage",
        )

    first = driver.place(training("t0", 1))
    assert driver.place_all(training("t1", 1), training("t2", 2)) == [first, first]
    assert {first, driver.place(training("t3", 4))} == {"g1", "g2"}
    plain = [make_pod(name, cpu="1", scheduler_name="stowage") for name in ("p0", "p1")]
    assert sorted(driver.place_all(*plain)) == ["c1", "c2"]


def extender_concerns_only_pods_that_request_its_resource() -> None:
    driver = SampleDriver("extender.yaml", [make_node("a"), make_node("b")])
    assert driver.place(pod("plain")) in ("a", "b")
    wanted = ResourceRequirements({"cpu": "100m", "example.com/fpga": "1"})
    fpga = make_pod(
        "fpga", containers=(Container("c", resources=wanted),), scheduler_name="stowage"
    )
    (question,) = of_type(
        ConsultExtenders, [*driver.handle(PendingPodSeen(fpga)), *driver.schedule(1)]
    )
    assert (question.pod.name, question.node_names) == ("fpga", ("a", "b"))


def policy_keeps_a_service_in_one_rack_and_off_retiring_nodes() -> None:
    labels: dict[str, dict[str, str]] = {
        "plain": {"rack": "1", "room": "x"},
        "fast": {"rack": "2", "room": "x", "ssd": ""},
        "next": {"rack": "2", "room": "y"},
        "retiring": {"rack": "2", "room": "z", "ssd": "", "retiring": ""},
    }
    nodes = [make_node(name, labels=each) for name, each in labels.items()]
    driver = SampleDriver("policy-1.12.json", nodes)
    driver.handle(WorkloadSeen("Service", "default", "web", WEB_PODS))
    assert driver.place(pod("alone")) == "fast"
    assert [driver.place(each) for each in webs(2)] == ["fast", "next"]
    stuck = pod("stuck", node_selector={"room": "z"})
    assert driver.place(stuck).startswith(
        "0/4 nodes are available: 1 node(s) didn't have the requested labels, "
        "3 node(s) didn't match Pod's node affinity/selector."
    )


SCENARIOS: dict[str, Callable[[], None]] = {
    "default.yaml": default_spreads_over_zones_until_one_is_full,
    "bin-packing.yaml": bin_packing_fills_one_node_before_the_next,
    "spread-hard.yaml": spread_hard_rejects_pods_that_exceed_the_skew,
    "cluster-autoscaler-provider.yaml": cluster_autoscaler_fills_one_node_before_the_next,
    "requested-to-capacity.yaml": requested_to_capacity_fills_to_seventy_percent,
    "gpu-packing.yaml": gpu_packing_leaves_whole_nodes_free,
    "extender.yaml": extender_concerns_only_pods_that_request_its_resource,
    "policy-1.12.json": policy_keeps_a_service_in_one_rack_and_off_retiring_nodes,
    "aged-priorities.yaml": aged_priorities_let_an_hour_outweigh_a_thousand_points,
    "legacy-1.12.yaml": legacy_spreads_and_avoids_annotated_nodes,
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_a_sample_schedules_as_its_comments_say(scenario: Callable[[], None]) -> None:
    scenario()


def test_every_sample_has_a_scenario() -> None:
    assert {file.name for file in CONFIG.iterdir()} == set(SCENARIOS)


@pytest.mark.parametrize(
    ("file", "provider"),
    [
        ("legacy-1.12.yaml", "DefaultProvider"),
        ("cluster-autoscaler-provider.yaml", "ClusterAutoscalerProvider"),
    ],
)
def test_the_samples_of_1_12_equal_its_providers(file: str, provider: str) -> None:
    assert read_sample(file) == provider_configuration(provider)


def test_every_sample_passes_config_check() -> None:
    files = sorted(map(str, CONFIG.iterdir()))
    result = CliRunner().invoke(app, ["config", "check", *files])
    assert result.exit_code == 0, result.output


def test_the_autoscaler_profile_differs_from_the_legacy_one_in_one_priority() -> None:
    files = ("legacy-1.12.yaml", "cluster-autoscaler-provider.yaml")
    texts = [(CONFIG / file).read_text(encoding="utf-8") for file in files]
    legacy, autoscaler = (
        [line for line in text.splitlines() if not line.lstrip().startswith("#")] for text in texts
    )
    assert [line.replace("LeastRequested", "MostRequested") for line in legacy] == autoscaler


def test_in_the_legacy_profile_a_node_under_pressure_gets_no_best_effort_pod() -> None:
    pressed = make_node("pressed", conditions=(Condition("MemoryPressure", "True"),))
    driver = SampleDriver("legacy-1.12.yaml", [pressed])
    assert driver.place(make_pod("best-effort", scheduler_name="stowage")).startswith(
        "0/1 nodes are available: 1 node(s) had memory pressure."
    )
    assert driver.place(pod("burstable")) == "pressed"


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
