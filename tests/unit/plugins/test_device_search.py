"""The search for devices: its time limit, and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stowage.api.objects.device import ResourceClaim
from stowage.api.values.duration import Duration
from stowage.engine.scheduling import Failed, Scheduled, SchedulingRequest, TieBreaker, schedule_pod
from stowage.engine.state.time_limits import TimeLimits
from stowage.framework import CycleState
from stowage.plugins.dynamic_resources.allocator import OutOfTime
from stowage.plugins.dynamic_resources.answers import Attempt
from stowage.plugins.dynamic_resources.templates import Templates
from stowage.state import ClusterCache, make_pod_info
from tests.support.builders import make_node
from tests.support.device_builders import (
    device,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
    request,
)
from tests.unit.plugins.device_cluster import cluster_of, framework_for, schedule

MODEL = "gpu.example.com/model"
ANY = {"cel": {"expression": "true"}}


def test_a_search_that_takes_too_long_ends_the_attempt() -> None:
    devices = [device(f"gpu-{index}", model=f"m{index}") for index in range(24)]
    claim = make_claim(
        "c",
        request("r", count=9),
        constraints=[
            {"requests": ["r"], "matchAttribute": MODEL},
        ],
    )
    distinct = [{"distinctAttribute": MODEL}]  # so that nothing is left out
    several = make_claim("d", *(request(f"r{index}") for index in range(5)), constraints=distinct)
    nodes = [each for name in "ab" for each in (make_node(name), make_slice(name, devices))]
    cache = cluster_of(*nodes, make_class(), several, claim)
    times, started = iter(range(10_000)), list[float]()
    limits = TimeLimits(lambda: float(next(times)))

    def start_limit(limit_s: float) -> Callable[[], bool]:
        started.append(limit_s)
        return limits.start(limit_s)

    framework, snapshot = framework_for(cache, filter_timeout=Duration(10)), cache.snapshot()
    pod = make_pod_info(pod_with_claims("p", "d", "c"), cache.classes)
    for only, named in ((None, "a"), (frozenset("b"), "b")):
        state, ties = CycleState(start_limit=start_limit), TieBreaker(lambda _: 0)
        failed = schedule_pod(
            SchedulingRequest(framework, snapshot, pod, state, ties, node_names=only)
        )
        assert isinstance(failed, Failed)
        text = f"node {named}: timed out trying to allocate devices"
        assert failed.status.message.endswith(text)
    assert started == [10, 10]


def test_the_clock_is_read_once_in_64_steps_of_a_search() -> None:
    alike = [{"matchAttribute": MODEL}]
    claims = [make_claim(name, request(count=30), constraints=alike) for name in "cde"]
    devices = [device(f"gpu-{index}", model="m") for index in range(90)]
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", devices), *claims)
    num_reads = 0

    def is_late() -> bool:
        nonlocal num_reads
        num_reads += 1
        return False

    state = CycleState(start_limit=lambda _limit_s: is_late)
    pod = pod_with_claims("p", "c", "d", "e")
    assert isinstance(schedule(cache, pod, state, filter_timeout=Duration(10)), Scheduled)
    assert num_reads == 1


@pytest.mark.parametrize("constraint", ["matchAttribute", "distinctAttribute"])
def test_two_searches_are_enough_for_two_pods_of_a_template_while_no_device_changes(
    constraint: str,
) -> None:
    """Match constraints are checked on all nodes at once; each pod gets its devices by a search.

    With other constraints a search on each node finds the devices for all pods.
    """
    claims = [
        make_claim(name, request("r", count=2), constraints=[{constraint: MODEL}])
        for name in ("c", "d")
    ]
    models = ("m", "m" if constraint == "matchAttribute" else "n")
    devices = [device(f"gpu-{model}-{at}", model=model) for at, model in enumerate(models)]
    nodes = [each for name in "ab" for each in (make_node(name), make_slice(name, devices))]
    cache = cluster_of(*nodes, make_class(), *claims)
    framework, started = framework_for(cache, filter_timeout=Duration(10)), list[float]()

    def start_limit(limit_s: float) -> Callable[[], bool]:
        started.append(limit_s)
        return lambda: False

    for name in ("c", "d"):
        pod = make_pod_info(pod_with_claims(f"p-{name}", name), cache.classes)
        state, ties = CycleState(start_limit=start_limit), TieBreaker(lambda _: 0)
        outcome = schedule_pod(SchedulingRequest(framework, cache.snapshot(), pod, state, ties))
        assert isinstance(outcome, Scheduled)
        framework.run_reserve(state, pod, outcome.node_name)
    assert started == [10, 10]


@pytest.mark.parametrize(
    ("values", "requests"),
    [
        # Half of the devices have the one value, half the other: no 17 are alike.
        (["m0", "m1"] * 16, [request(count=17)]),
        # Any 8 devices for the first request leave too few for the second.
        (["m0"] * 31, [request("r", count=16), request("s", count=16, selectors=[ANY])]),
        # Each device has a value of its own.
        ([f"m{index}" for index in range(128)], [request(f"r{i}", count=8) for i in range(4)]),
    ],
)
def test_a_search_without_hope_ends_soon(values: list[str], requests: list[Any]) -> None:
    devices = [device(f"gpu-{index}", model=value) for index, value in enumerate(values)]
    claim = make_claim("c", *requests, constraints=[{"matchAttribute": MODEL}])
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", devices), claim)
    assert searched_steps(cache, claim) == (False, True)


def test_a_search_passes_over_values_of_too_few_devices() -> None:
    """20 devices of one value, then 30 of another: 25 of these are found soon."""
    values = ["m0"] * 20 + ["m1"] * 30
    devices = [device(f"gpu-{index}", model=value) for index, value in enumerate(values)]
    claim = make_claim("c", request(count=25), constraints=[{"matchAttribute": MODEL}])
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", devices), claim)
    assert searched_steps(cache, claim) == (True, True)


def searched_steps(cache: ClusterCache, claim: ResourceClaim) -> tuple[bool, bool]:
    """Whether the exact search found devices, and within 64 checks of its time limit."""
    snapshot, checks = cache.snapshot(), iter(range(64))
    template = Templates().of([claim.spec])
    attempt = Attempt(snapshot, template, ("c",), lambda: lambda: next(checks, None) is None)
    row = snapshot.row_of("a")
    assert row is not None
    try:
        return attempt.search(row, {}) is not None, True
    except OutOfTime:
        return False, False
