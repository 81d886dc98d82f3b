"""Which devices serve the requests of claims, and which events move the pods of claims."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.cluster_events import QueueingHint
from stowage.api.objects.device import ResourceClaim
from stowage.engine.scheduling import Failed, Scheduled, Unschedulable
from stowage.plugins.dynamic_resources.companions import are_in_flight
from stowage.plugins.dynamic_resources.hints import ClaimHints
from stowage.state import make_pod_info
from stowage.state.devices.devices import ClaimAllocation
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import (
    DRIVER,
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
    quantities,
    request,
)
from tests.unit.plugins.device_cluster import cluster_of, schedule

OWN = f'device.attributes["{DRIVER}"]'
SMALL = f'{OWN}.model == "small"'


def test_a_request_that_is_neither_exact_nor_a_list_is_an_error_with_its_name() -> None:
    cache = cluster_of(make_node("a"), make_class(), make_claim("c", {"name": "r"}))
    outcome = schedule(cache, pod_with_claims("p", "c"))
    assert isinstance(outcome, Failed)
    text = "resource claim default/c, request r: unknown request type"
    assert text in outcome.status.message


def test_too_many_devices_of_an_extended_resource_are_refused_with_the_name_of_their_claim() -> (
    None
):
    resource = "example.com/gpu"
    cache = cluster_of(make_node("a"), make_class(resource=resource), make_slice("a", ["gpu-0"]))
    outcome = schedule(cache, make_pod("p", requests={resource: "33"}))
    assert "default/<extended-resources>" in str(outcome)


def test_requests_with_other_tolerations_select_other_devices() -> None:
    taint = {"key": "old", "value": "", "effect": "NoSchedule"}
    tolerant = request("r0", tolerations=[{"key": "old", "operator": "Exists"}])
    cache = cluster_of(
        make_node("a"),
        make_class(),
        make_slice("a", [device("gpu-0", taints=[taint]), device("gpu-1")]),
        make_claim("c", tolerant, request("r1")),
    )
    assert getattr(schedule(cache, pod_with_claims("p", "c")), "node_name", "") == "a"


def test_one_device_does_not_serve_two_different_requests() -> None:
    selector = {"cel": {"expression": SMALL}}
    cache = cluster_of(
        make_node("a"),
        make_class(),
        make_slice("a", [device("gpu-0", model="small")]),
        make_claim("c", request("r0", selectors=[selector]), request("r1")),
    )
    assert getattr(schedule(cache, pod_with_claims("p", "c")), "node_name", "") == ""


def test_a_node_fits_only_if_one_value_has_devices_for_each_request_that_must_agree() -> None:
    def sized(name: str, size: str, model: str) -> dict[str, Any]:
        return device(name, attributes={"size": {"string": size}, "model": {"string": model}})

    requests = [
        request(size, selectors=[{"cel": {"expression": f'{OWN}.size == "{size}"'}}])
        for size in ("large", "small")
    ]
    cache = cluster_of(
        make_node("a"),
        make_node("b"),
        make_class(),
        make_slice("a", [sized("gpu-0", "large", "x"), sized("gpu-1", "small", "y")]),
        make_slice("b", [sized("gpu-0", "large", "y"), sized("gpu-1", "small", "y")]),
        make_claim("c", *requests, constraints=[{"matchAttribute": f"{DRIVER}/model"}]),
    )
    assert getattr(schedule(cache, pod_with_claims("p", "c")), "node_name", "") == "b"


def _given(claim: ResourceClaim) -> ClaimAllocation:
    assert claim.status.allocation is not None
    return ClaimAllocation(claim.metadata.uid, "default/c", claim.status.allocation)


def test_companions_hold_what_is_in_flight_with_the_same_devices() -> None:
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", ["gpu-0", "gpu-1"]))
    devices = cache.snapshot().devices
    reserved = _given(allocated(make_claim("c"), "a", "gpu-0"))
    other = _given(allocated(make_claim("c"), "a", "gpu-1"))
    assert not are_in_flight([reserved], devices)
    devices.begin(reserved, "uid-p")
    assert are_in_flight([reserved], devices)
    assert not are_in_flight([other], devices)


FREE, TAKEN = make_claim("other"), allocated(make_claim("other"), "a", "gpu-0")


@pytest.mark.parametrize(
    ("claim", "want"), [("c", QueueingHint.QUEUE), ("other", QueueingHint.SKIP)]
)
def test_a_pod_is_moved_by_its_update_once_its_claims_are_there(
    claim: str, want: QueueingHint
) -> None:
    cache = cluster_of(make_node("a"), make_class(), make_claim(claim))
    pod = make_pod_info(pod_with_claims("p", "c"), cache.classes)
    hints = ClaimHints(lambda: cache.snapshot().devices)
    assert hints.after_pod_change(pod, pod, pod) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        (TAKEN, FREE, QueueingHint.QUEUE),
        (FREE, TAKEN, QueueingHint.SKIP),
        (FREE, FREE, QueueingHint.SKIP),
        (None, FREE, QueueingHint.SKIP),
        (None, make_claim("own"), QueueingHint.QUEUE),
        (make_claim("own"), make_claim("own"), QueueingHint.SKIP),
        (make_claim("own"), allocated(make_claim("own"), "a", "gpu-1"), QueueingHint.QUEUE),
    ],
)
def test_a_claim_moves_the_pods_that_name_it_and_those_that_may_get_its_freed_devices(
    old: ResourceClaim | None, new: ResourceClaim, want: QueueingHint
) -> None:
    cache = cluster_of(make_node("a"), make_class(), make_claim("own"))
    hints = ClaimHints(lambda: cache.snapshot().devices)
    pod = make_pod_info(pod_with_claims("p", "own"), cache.classes)
    assert hints.after_claim_change(pod, old, new) is want


@pytest.mark.parametrize(("left", "fits"), [("6", True), ("5", False)])
def test_every_share_of_a_device_without_capacities_consumes_its_counters(
    left: str, fits: bool
) -> None:
    """kube-scheduler notices only consumed capacity of other claims, and there is none."""
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 2}
    total = str(6 + int(left))
    sets = [{"name": "s", "counters": quantities({"memory": total})}]
    uses = [{"counterSet": "s", "counters": quantities({"memory": "6"})}]
    shared = device("gpu-0", allowMultipleAllocations=True, consumesCounters=uses)
    cache = cluster_of(
        make_node("n"),
        make_class(),
        make_slice("n", [], name="a", pool=pool, sharedCounters=sets),
        make_slice("n", [shared], name="b", pool=pool),
        allocated(make_claim("held"), "n", "gpu-0", share_id="a-share"),
        make_claim("new"),
    )
    outcome = schedule(cache, pod_with_claims("p", "new"))
    assert isinstance(outcome, Scheduled) is fits


@pytest.mark.parametrize(("wanted", "fits"), [("6Gi", True), ("7Gi", False)])
def test_shares_of_a_device_that_is_dedicated_since_still_use_up_its_capacity(
    wanted: str, fits: bool
) -> None:
    capacity = {"memory": {"value": "10Gi", "requestPolicy": {"default": "1Gi"}}}
    shared = device("gpu-0", allowMultipleAllocations=True, capacity=capacity)
    used = {"memory": "4Gi"}
    needs = request("r", capacity={"requests": {"memory": wanted}})
    cache = cluster_of(
        make_node("n"),
        make_class(),
        make_slice("n", [shared], version="1"),
        allocated(make_claim("held"), "n", "gpu-0", share_id="a-share", consumed_capacity=used),
        make_claim("new", needs),
    )
    cache.update_device_object(make_slice("n", [device("gpu-0", capacity=capacity)], version="2"))
    cache.validate()
    outcome = schedule(cache, pod_with_claims("p", "new"))
    assert isinstance(outcome, Scheduled if fits else Unschedulable)


@pytest.mark.parametrize("kind", ["matchAttribute", "distinctAttribute"])
def test_two_attributes_of_an_unknown_type_are_neither_equal_nor_different(kind: str) -> None:
    """As with kube-scheduler: lists, for example, while ``DRAListTypeAttributes`` is off."""
    devices = [device(name, attributes={"link": {}}) for name in ("gpu-0", "gpu-1")]
    constraint = {"requests": [], kind: "gpu.example.com/link"}
    cache = cluster_of(
        make_node("n"),
        make_class(),
        make_slice("n", devices),
        make_claim("pair", request("r0"), request("r1"), constraints=[constraint]),
        make_claim("one", request("r0"), constraints=[constraint]),
    )
    assert isinstance(schedule(cache, pod_with_claims("p", "pair")), Unschedulable)
    assert isinstance(schedule(cache, pod_with_claims("p", "one")), Scheduled)


@pytest.mark.parametrize(("total", "fits"), [("12", True), ("11", False)])
def test_the_devices_of_one_claim_consume_a_counter_together(total: str, fits: bool) -> None:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 2}
    sets = [{"name": "s", "counters": quantities({"memory": total})}]
    uses = [{"counterSet": "s", "counters": quantities({"memory": "6"})}]
    devices = [device(name, consumesCounters=uses) for name in ("gpu-0", "gpu-1")]
    cache = cluster_of(
        make_node("n"),
        make_class(),
        make_slice("n", [], name="a", pool=pool, sharedCounters=sets),
        make_slice("n", devices, name="b", pool=pool),
        make_claim("both", request(count=2)),
    )
    outcome = schedule(cache, pod_with_claims("p", "both"))
    assert isinstance(outcome, Scheduled) is fits


@pytest.mark.parametrize(("num_slices", "fits"), [(3, False), (2, True)])
def test_a_pool_that_has_more_slices_than_it_says_counts_only_those_for_the_node(
    num_slices: int, fits: bool
) -> None:
    """kube-scheduler looks for the other slices of a pool only if some are missing."""
    pool = {"name": "p", "generation": 1, "resourceSliceCount": num_slices}
    sets = [{"name": "s", "counters": quantities({"memory": "8Gi"})}]
    uses = [{"counterSet": "s", "counters": quantities({"memory": "8Gi"})}]
    cache = cluster_of(
        make_node("n"),
        make_class(),
        make_slice("n", [], name="a", pool=pool, sharedCounters=sets),
        make_slice("n", [device("here", consumesCounters=uses)], name="b", pool=pool),
        make_slice("m", [device("there", consumesCounters=uses)], name="c", pool=pool),
        allocated(make_claim("held"), "p", "there"),
        make_claim("new"),
    )
    outcome = schedule(cache, pod_with_claims("p", "new"))
    assert isinstance(outcome, Scheduled) is fits
