"""Workload files are decoded strictly, and their distributions draw what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowage.analysis.simulation.distributions import Distribution, decode_distribution
from stowage.analysis.simulation.random_streams import random_stream, tie_breaker
from stowage.analysis.simulation.timeline import NodeJoins, NodeLeaves, PodArrives
from stowage.analysis.simulation.workload_spec import decode_workload, read_seconds
from stowage.api.config.errors import ConfigError, InvalidConfiguration
from tests.support.workloads import nodes_of, pods_of, synthetic_workload, written_workload


def pods(**fields: Any) -> dict[str, Any]:
    return {"pods": [pods_of(**{"count": 1, **fields})]}


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown field": (
        {"node": []},
        "spec.node: [] (expected no such field; did you mean nodes?)",
    ),
    "no name": ({"nodes": [nodes_of(name="")]}, "spec.nodes[0].name"),
    "a name twice": ({"nodes": [nodes_of(), nodes_of()]}, "spec.nodes[1].name"),
    "too many nodes": ({"nodes": [nodes_of(10**6)]}, "spec.nodes[0].count: 1000000 (expected 0 to"),
    "an amount": (
        {"nodes": [{"name": "a", "template": {"status": {"allocatable": {"cpu": "many"}}}}]},
        "spec.nodes[0].template",
    ),
    "no amounts": ({"nodes": [{"name": "a", "template": {}}]}, "status.allocatable"),
    "until before from": (pods(**{"from": "9s", "until": "3s"}), "spec.pods[0].until"),
    "no end": (
        pods(count=None, arrivals={"perSecond": 1}),
        "spec.pods[0].count: null (expected a number, or until, or spec.duration",
    ),
    "no rate": (pods(arrivals={"process": "poisson"}), "spec.pods[0].arrivals.perSecond: 0.0"),
    "a process": (pods(arrivals={"process": "fractal"}), "(expected poisson, constant or bursts)"),
    "a burst": (
        pods(arrivals={"process": "bursts", "every": "1s", "size": 0}),
        "spec.pods[0].arrivals.size: 0 (expected 1 or more on average)",
    ),
    "a lifetime": (
        pods(lifetime={"exponential": {"mean": "soon"}}),
        'spec.pods[0].lifetime.exponential.mean: "soon" (expected a duration such as 90',
    ),
    "a distribution": (pods(lifetime={"pareto": {}}), "(expected a value, or one of constant"),
    "a parameter": (
        pods(lifetime={"uniform": {"min": 1, "max": 2, "mode": 1}}),
        "spec.pods[0].lifetime.uniform.mode: 1 (expected no such field; known are min, max)",
    ),
    "no parameter": (
        pods(lifetime={"lognormal": {"median": 5}}),
        "spec.pods[0].lifetime.lognormal",
    ),
    "weights": (
        pods(lifetime={"choice": {"values": [1, 2], "weights": [1]}}),
        "spec.pods[0].lifetime.choice.weights: [1] (expected 2 weights, one a value",
    ),
    "a quantity": (
        pods(requests={"memory": {"choice": ["1Gi", "much"]}}),
        'spec.pods[0].requests.memory.choice.values[1]: "much" (expected a quantity',
    ),
    "failures without an end": (
        {"nodes": [nodes_of(failures={"after": "1h", "repair": "1m"})]},
        "spec.duration",
    ),
    "a priority class": (
        pods(pod_spec={"priorityClassName": "vip"}),
        'spec.pods[0].template: "pod" (expected a pod template; Pod pod: spec.priorityClassName',
    ),
    "a template": ({"pods": [{"name": "a", "count": 1}]}, "spec.pods[0].template"),
    "no driver": ({"nodes": [nodes_of(devices=[{}])]}, "spec.nodes[0].devices[0].driver"),
    "too many devices": (
        {"nodes": [nodes_of(devices=[{"driver": "d", "count": 500}])]},
        "spec.nodes[0].devices[0].count: 500 (expected 1 to 128)",
    ),
    "an attribute": (
        {"nodes": [nodes_of(devices=[{"driver": "d", "attributes": {"model": [1]}}])]},
        "spec.nodes[0].devices[0]",
    ),
    "no minimum": (
        pods(group={"size": 2, "minCount": 0}),
        "spec.pods[0].group.minCount: 0 (expected 1 or more)",
    ),
    "no size": (pods(group={"size": "many"}), "spec.pods[0].group.size"),
    "a group": (
        pods(group={"size": 2, "template": {"spec": {"priorityClassName": "vip"}}}),
        "spec.pods[0].group.template",
    ),
    "the policy of a group": (
        pods(group={"size": 2, "template": {"spec": {"schedulingPolicy": {"basic": {}}}}}),
        "spec.pods[0].group.template.spec.schedulingPolicy",
    ),
}


@pytest.mark.parametrize(("spec", "message"), INVALID.values(), ids=INVALID)
def test_an_error_names_the_field_and_what_was_expected(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        synthetic_workload(**spec)
    assert message in str(refused.value)


def test_all_errors_are_reported() -> None:
    written = written_workload(pods=[{"name": "a", "count": -1, "lifetime": "x"}])
    with pytest.raises(InvalidConfiguration) as refused:
        decode_workload({**written, "apiVersion": "v1"})
    assert [each.path for each in refused.value.errors] == [
        "apiVersion",
        "spec.pods[0].count",
        "spec.pods[0].lifetime",
    ]


DISTRIBUTIONS: dict[str, tuple[object, float, float]] = {
    "constant": ("1m", 60.0, 0.0),
    "uniform": ({"uniform": {"min": 10, "max": 20}}, 15.0, 10 / 12**0.5),
    "exponential": ({"exponential": {"mean": "30s"}}, 30.0, 30.0),
    "lognormal": ({"lognormal": {"median": 10, "sigma": 0.5}}, 11.331, 6.039),
    "choice": ({"choice": {"values": [1, 5], "weights": [3, 1]}}, 2.0, 3**0.5),
}


@pytest.mark.parametrize(
    ("written", "mean", "deviation"), DISTRIBUTIONS.values(), ids=DISTRIBUTIONS
)
def test_drawn_numbers_have_the_moments_of_their_distribution(
    written: object, mean: float, deviation: float
) -> None:
    errors: list[ConfigError] = []
    found = decode_distribution(written, read_seconds, "lifetime", errors)
    assert found is not None
    assert not errors
    drawn = found.draw(random_stream(1, "test"), 40_000)
    assert found.mean == pytest.approx(mean, rel=1e-3)
    assert drawn.mean() == pytest.approx(mean, rel=0.03)
    assert drawn.std() == pytest.approx(deviation, rel=0.05, abs=1e-9)


def test_bounds_cut_a_distribution() -> None:
    drawn = Distribution("exponential", 10.0, least=5.0, most=12.0).draw(random_stream(1, "x"), 500)
    assert (drawn.min(), drawn.max()) == (5.0, 12.0)


def test_streams_differ_by_seed_and_purpose() -> None:
    streams = [(1, ("a", "b")), (1, ("ab",)), (1, ("a", "c")), (2, ("a", "b"))]
    first = [random_stream(seed, *purpose).random() for seed, purpose in streams]
    assert len(set(first)) == len(first)
    assert random_stream(1, "a", "b").random() == first[0]


def test_ties_are_broken_evenly() -> None:
    choose = tie_breaker(random_stream(1, "ties"))
    counts = np.bincount([choose(4) for _ in range(4_000)], minlength=4)
    assert len(counts) == 4
    assert counts.min() > 900


def arrival_times(**source: Any) -> list[float]:
    happenings = synthetic_workload(pods=[pods_of(**source)]).timeline(1).happenings
    return [each.at_s for each in happenings]


def test_arrivals_follow_their_process() -> None:
    constant = {"process": "constant", "perSecond": 2}
    assert arrival_times(arrivals=constant, count=4) == [0.0, 0.5, 1.0, 1.5]
    assert arrival_times(arrivals=constant, until="11s", **{"from": "10s"}) == [10.0, 10.5, 11.0]
    bursts = {"process": "bursts", "every": "1m", "size": 2}
    assert arrival_times(arrivals=bursts, count=5) == [0.0, 0.0, 60.0, 60.0, 120.0]
    assert arrival_times(count=2, **{"from": "5s"}) == [5.0, 5.0]
    poisson = arrival_times(arrivals={"process": "poisson", "perSecond": 4}, count=4_000)
    assert poisson == sorted(poisson)
    assert poisson[-1] == pytest.approx(1_000, rel=0.05)


def test_pods_get_the_drawn_requests_and_share_equal_specs() -> None:
    requests = {"cpu": {"choice": [1, "1500m"]}, "example.com/gpu": 2}
    workload = synthetic_workload(pods=[pods_of(count=50, requests=requests)])
    arrivals = [each for each in workload.timeline(1).happenings if isinstance(each, PodArrives)]
    specs = {id(each.pod.spec): each.pod.spec for each in arrivals}
    found = [spec.containers[0].resources.requests for spec in specs.values()]
    assert sorted(str(each["cpu"]) for each in found) == ["1000m", "1500m"]
    assert all(each["example.com/gpu"] == 2 and each["memory"] == "1Gi" for each in found)


def test_nodes_join_fail_come_back_and_leave() -> None:
    failures = {"after": "40s", "repair": "15s"}
    failing = synthetic_workload(duration="100s", nodes=[nodes_of(1, failures=failures)])
    happenings = list(failing.timeline(1).happenings)
    assert [(type(each), each.at_s) for each in happenings] == [
        (NodeLeaves, 40.0),
        (NodeJoins, 55.0),
        (NodeLeaves, 95.0),
    ]
    late = synthetic_workload(nodes=[nodes_of(2, until="9s", **{"from": "3s"})])
    assert [(type(each), each.at_s) for each in late.timeline(1).happenings] == [
        (NodeJoins, 3.0),
        (NodeJoins, 3.0),
        (NodeLeaves, 9.0),
        (NodeLeaves, 9.0),
    ]
