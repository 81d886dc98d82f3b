"""Pods of a workload that arrive in groups run together or not at all, and use devices of nodes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.simulation.result import ExperimentResult
from stowage.analysis.simulation.run import simulate
from stowage.analysis.simulation.timeline import OutsideEvent, PodArrives
from stowage.analysis.workload_pods import objects_of_manifests
from stowage.api.events import PodGroupSeen
from stowage.api.instructions import BindPod
from stowage.engine.journal import Entry
from tests.support.workloads import DefaultPolicy, nodes_of, pods_of, synthetic_workload

SIZES = {"choice": [2, 3]}


class Bindings:
    """Counts the bound pods of each group, by the time of the call."""

    def __init__(self) -> None:
        self.at: dict[float, Counter[str]] = {}

    def record(self, entry: Entry) -> None:
        for each in entry.instructions:
            if isinstance(each, BindPod):
                group = each.pod.name.rpartition("-")[0]
                self.at.setdefault(entry.now, Counter())[group] += 1


def gangs_of(**fields: Any) -> dict[str, Any]:
    return pods_of("gang", "2", **{"lifetime": {"exponential": {"mean": "9s"}}, **fields})


def sizes_of_groups(seed: int, **spec: Any) -> dict[str, tuple[int, int | None]]:
    """Group -> its size, and its minimum."""
    sizes: Counter[str] = Counter()
    least: dict[str, int | None] = {}
    for each in synthetic_workload(**spec).timeline(seed).happenings:
        if isinstance(each, PodArrives):
            assert each.pod.spec.scheduling_group is not None
            sizes[str(each.pod.spec.scheduling_group.pod_group_name)] += 1
        elif isinstance(each, OutsideEvent) and isinstance(each.event, PodGroupSeen):
            least[each.event.group.metadata.name] = each.event.group.min_count
    return {name: (size, least[name]) for name, size in sizes.items()}


@pytest.mark.parametrize("seed", range(3))
def test_a_group_is_bound_whole_or_not_at_all(seed: int) -> None:
    """The groups are larger than what is free most of the time."""
    spec: dict[str, Any] = {
        "nodes": [nodes_of(3, "4")],
        "pods": [
            gangs_of(
                count=30, arrivals={"process": "poisson", "perSecond": 0.3}, group={"size": SIZES}
            )
        ],
    }
    bindings = Bindings()
    result = simulate(synthetic_workload(**spec), DefaultPolicy(), seed, bindings)
    sizes = sizes_of_groups(seed, **spec)
    assert {size for size, _ in sizes.values()} == {2, 3}
    bound = Counter[str]()
    for counts in bindings.at.values():
        for group, number in counts.items():
            assert number == sizes[group][0]
        bound += counts
    assert result.metrics["bound"] == result.metrics["pods"] == bound.total() > 60
    assert result.metrics["wait_max_s"] > 0


def test_a_group_starts_with_its_minimum_and_counts_as_one_arrival() -> None:
    """Two of four pods fit; the others follow as there is room."""
    group = {"size": 4, "minCount": 2}
    spec: dict[str, Any] = {
        "nodes": [nodes_of(1, "4")],
        "pods": [gangs_of(count=1, group=group, lifetime="10s")],
    }
    assert sizes_of_groups(1, **spec) == {"gang-0": (4, 2)}
    result = simulate(synthetic_workload(**spec), DefaultPolicy(), 1)
    assert result.metrics["bound"] == 4
    assert result.metrics["wait_max_s"] == 10.0
    assert result.metrics["ended_s"] == 20.0


def test_a_minimum_above_the_size_of_a_group_is_its_size() -> None:
    group = {"size": 2, "minCount": 4}
    assert sizes_of_groups(1, pods=[gangs_of(count=2, group=group)]) == {
        "gang-0": (2, 2),
        "gang-1": (2, 2),
    }


def test_the_template_of_a_group_confines_it_to_one_zone() -> None:
    """Each zone has room for two pods, so no group of three ever fits."""
    topology = {"schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/zone"}]}}
    nodes = [nodes_of(2, "4", zones=["a", "b"])]

    def bound(**group: Any) -> float:
        pods = [gangs_of(count=1, group={"size": 3, **group}, lifetime="10s")]
        workload = synthetic_workload(nodes=nodes, pods=pods)
        return simulate(workload, DefaultPolicy(), 1).metrics["bound"]

    assert bound() == 3
    assert bound(template={"spec": topology}) == 0


GPUS = {
    "driver": "gpu.example.com",
    "count": 2,
    "attributes": {"model": "a100", "mig": False, "cores": 9},
    "capacity": {"memory": "80Gi"},
}
SELECTOR = (
    'device.attributes["gpu.example.com"].model == "a100" && '
    '!device.attributes["gpu.example.com"].mig && '
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) > 0'
)
CLAIMS: list[dict[str, Any]] = [
    {
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
    },
    {
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "big"},
        "spec": {
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "gpu",
                            "exactly": {
                                "deviceClassName": "gpu",
                                "selectors": [{"cel": {"expression": SELECTOR}}],
                            },
                        }
                    ]
                }
            }
        },
    },
]


def with_devices(**spec: Any) -> ExperimentResult:
    cluster = objects_of_manifests(CLAIMS, ClusterObjects())
    return simulate(synthetic_workload(cluster, **spec), DefaultPolicy(), 1)


def test_pods_with_claims_share_the_devices_of_the_nodes() -> None:
    """Each of two nodes has two devices: six pods of 10 seconds need two rounds."""
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "big"}]}
    result = with_devices(
        nodes=[nodes_of(2, "9", devices=[GPUS]), {**nodes_of(2, "9"), "name": "plain"}],
        pods=[pods_of(count=6, lifetime="10s", pod_spec=claims)],
    )
    assert result.metrics["completed"] == 6
    assert result.metrics["ended_s"] == 20.0


def test_devices_come_and_go_with_their_nodes() -> None:
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "big"}]}
    nodes = [
        nodes_of(1, "9", devices=[GPUS], until="5s"),
        {**nodes_of(1, "9", devices=[GPUS]), "name": "later", "from": "8s"},
        {**nodes_of(1, "9"), "name": "plain"},
    ]
    result = with_devices(nodes=nodes, pods=[pods_of(count=2, lifetime="10s", pod_spec=claims)])
    assert result.metrics["evicted"] == 2
    assert result.metrics["completed"] == 2
    assert result.metrics["ended_s"] == 18.0
