"""A pod is bound after its resource claims are allocated and written."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.api.events import BindFailed, ClaimsWritten, DeviceObjectGone, NodeSeen, PendingPodGone
from stowage.api.instructions import BindClaims, DeleteClaim, PatchPodStatus, ReleaseClaims
from stowage.api.objects.meta import OwnerReference
from stowage.api.values import claim_writes
from tests.stories.claim_driver import ClaimDriver, bound_to, failures, writes_in, written
from tests.support.builders import make_node
from tests.support.device_builders import (
    DRIVER,
    allocated,
    make_claim,
    make_slice,
    request,
    with_version,
)
from tests.support.engines import of_type

FAILED = 'running PreBind plugin "DynamicResources": '


def test_a_pod_is_bound_when_its_claim_is_written() -> None:
    driver = ClaimDriver(make_claim("c"))
    writes = writes_in(driver.schedule_pod("p", "c"))
    (wanted,) = writes.claims
    assert wanted.allocation is not None
    (result,) = wanted.allocation.devices.results
    assert (result.driver, result.pool, result.device) == (DRIVER, "n0", "gpu-0")
    assert driver.in_flight == {"uid-c"}
    assert bound_to(driver.answer(writes)) == ["n0"]
    assert driver.in_flight == set()
    driver.check_replay()


@pytest.mark.parametrize(
    ("resource", "nominated"), [("example.com/gpu", ["own"]), ("example.com/nic", [])]
)
def test_a_pod_whose_resource_a_class_serves_is_nominated_although_its_node_has_the_resource(
    resource: str, nominated: list[str]
) -> None:
    driver = ClaimDriver()
    driver.handle(NodeSeen(make_node("own", allocatable={resource: "1"})))
    wanted = {"kubernetes.io/hostname": "own"}
    answer = driver.schedule_pod("p", requests={resource: "1"}, node_selector=wanted)
    assert [each.nominated_node_name for each in of_type(PatchPodStatus, answer)] == nominated
    if nominated:
        writes = writes_in(answer)
        assert (writes.claims, writes.extended) == ((), None)
        answer = driver.answer(writes)
    assert bound_to(answer) == ["own"]
    driver.check_replay()


def test_a_pod_that_names_a_claim_twice_is_bound_with_the_devices_of_one_entry() -> None:
    driver = ClaimDriver(make_claim("c"))
    writes = writes_in(driver.schedule_pod("p", "c", "c"))
    first, second = writes.claims
    assert first == second
    assert bound_to(driver.answer(writes)) == ["n0"]
    assert driver.in_flight == set()
    assert len(driver.engine.state.cache.snapshot().devices.allocated.whole) == 1
    driver.check_replay()


def test_two_pods_in_a_row_get_different_devices() -> None:
    driver = ClaimDriver(*(make_claim(f"c{index}") for index in range(5)))
    taken = set()
    for index in range(4):
        writes = writes_in(driver.schedule_pod(f"p{index}", f"c{index}"))
        allocation = writes.claims[0].allocation
        assert allocation is not None
        (result,) = allocation.devices.results
        taken.add((result.pool, result.device))
    assert len(taken) == 4
    (text,) = failures(driver.schedule_pod("p4", "c4"))
    assert text.startswith("0/2 nodes are available: 2 cannot allocate all claims.")


def test_a_pod_waits_in_the_gate_until_its_claim_exists() -> None:
    driver = ClaimDriver()
    assert driver.schedule_pod("p", "c") == []
    (waiting_pod,) = driver.engine.dump()["queue"]["unschedulable"]
    assert waiting_pod["gated_by"] == "DynamicResources"
    driver.show(make_claim("c"))
    assert writes_in(driver.schedule()).pod.name == "p"


def test_a_pod_whose_claim_is_written_and_shown_late_does_not_free_the_device() -> None:
    driver = ClaimDriver(make_claim("c"), make_claim("d"))
    writes = writes_in(driver.schedule_pod("p", "c"))
    driver.answer(writes, version="7")
    driver.show(with_version(make_claim("c"), "6"))
    (other,) = writes_in(driver.schedule_pod("q", "d")).claims
    assert other.allocation is not None
    assert other.allocation.devices.results[0].pool == "n1"
    second = driver.engine.state.cache.snapshot().devices.allocated.whole
    assert len(second) == 2


def test_a_failed_write_frees_the_devices_and_the_pod_is_retried() -> None:
    driver = ClaimDriver(make_claim("c"))
    writes = writes_in(driver.schedule_pod("p", "c"))
    answer = driver.answer(writes, "add finalizer to claim default/c: refused")
    assert failures(answer) == [f"{FAILED}add finalizer to claim default/c: refused"]
    assert driver.in_flight == set()
    assert driver.queue_of("p") == "backoff"
    driver.now += 5.0
    assert writes_in(driver.schedule()).claims[0].allocation is not None


def test_of_two_claims_the_written_one_is_released_when_the_other_fails() -> None:
    driver = ClaimDriver(make_claim("c"), make_claim("d"))
    writes = writes_in(driver.schedule_pod("p", "c", "d"))
    first = tuple(written(writes))[:1]
    answer = driver.handle(ClaimsWritten("uid-p", writes.number, first, None, "no"))
    (release,) = of_type(ReleaseClaims, answer)
    assert [each.name for each in release.claims] == ["c"]
    devices = driver.engine.state.cache.snapshot().devices
    assert devices.in_flight == {}
    assert len(devices.allocated.whole) == 1


def test_a_reservation_that_was_given_back_is_made_again_before_the_watch_shows_it_gone() -> None:
    driver = ClaimDriver(make_claim("c"))
    driver.answer(writes_in(driver.schedule_pod("p", "c")))
    answer = driver.handle(BindFailed("uid-p", "n0", "no"))
    assert len(of_type(ReleaseClaims, answer)) == 1
    driver.now += 5.0
    (wanted,) = writes_in(driver.schedule()).claims
    assert wanted.allocation is None
    assert wanted.claim.status.reserved_for == ()


def test_a_reservation_that_was_given_back_is_made_again_although_others_write_the_claim() -> None:
    driver = ClaimDriver(make_claim("c"))
    driver.answer(writes_in(driver.schedule_pod("p", "c")))
    # Another pod reserves the claim before the API server has taken the reservation back.
    answer = driver.handle(BindFailed("uid-p", "n0", "no"))
    assert len(of_type(ReleaseClaims, answer)) == 1
    driver.answer(writes_in(driver.schedule_pod("q", "c")), version="6")
    driver.now += 5.0
    (wanted,) = writes_in(driver.schedule()).claims
    assert [each.uid for each in wanted.claim.status.reserved_for] == ["uid-q"]


def test_a_failed_attempt_requeues_the_pod_that_shares_its_claim() -> None:
    driver = ClaimDriver(make_claim("c"))
    writes = writes_in(driver.schedule_pod("p", "c"))
    driver.schedule_pod("q", "c")
    assert driver.queue_of("q") == "unschedulable"
    driver.answer(writes, "refused")
    assert driver.queue_of("q") == "backoff"


def test_a_failed_attempt_requeues_a_pod_that_found_its_devices_in_use() -> None:
    pairs = [make_claim(name, request(count=2)) for name in "cd"]
    driver = ClaimDriver(*pairs, make_claim("e"))
    writes = writes_in(driver.schedule_pod("p", "c"))
    driver.schedule_pod("q", "d")
    driver.schedule_pod("r", "e")
    assert driver.queue_of("r") == "unschedulable"
    driver.answer(writes, "refused")
    assert driver.queue_of("r") == "backoff"


def test_a_shared_claim_is_reserved_without_another_allocation() -> None:
    claim = allocated(make_claim("c"), "n1", "gpu-1", version="2")
    driver = ClaimDriver(claim)
    (wanted,) = writes_in(driver.schedule_pod("p", "c")).claims
    assert wanted.allocation is None
    assert driver.in_flight == set()


def test_a_pod_that_waits_for_a_claim_in_flight_is_retried_when_it_is_written() -> None:
    driver = ClaimDriver(make_claim("c"))
    writes = writes_in(driver.schedule_pod("p", "c"))
    (text,) = failures(driver.schedule_pod("q", "c"))
    assert "resource claim default/c is in the process of being allocated" in text
    driver.now += 10.0
    driver.answer(writes)
    assert writes_in(driver.schedule()).pod.name == "q"


def test_a_freed_device_brings_a_rejected_pod_back() -> None:
    used = [
        allocated(make_claim(f"used{index}"), f"n{index // 2}", f"gpu-{index % 2}")
        for index in range(4)
    ]
    driver = ClaimDriver(make_claim("c"), *used)
    (text,) = failures(driver.schedule_pod("p", "c"))
    assert "2 cannot allocate all claims" in text
    driver.now += 10.0
    driver.show(with_version(make_claim("used3"), "9"))
    allocation = writes_in(driver.schedule()).claims[0].allocation
    assert allocation is not None
    assert allocation.devices.results[0].pool == "n1"


def test_the_devices_of_a_deleted_pod_stay_in_flight_until_its_writes_have_ended() -> None:
    driver = ClaimDriver(make_claim("c"), make_claim("d"))
    writes = writes_in(driver.schedule_pod("p", "c"))
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    assert driver.in_flight == {"uid-c"}
    driver.answer(writes)
    assert driver.in_flight == set()
    whole = driver.engine.state.cache.snapshot().devices.allocated.whole
    assert [each.device for each in whole] == ["gpu-0"]


def test_an_answer_to_earlier_writes_does_not_count_for_later_ones() -> None:
    driver = ClaimDriver(make_claim("c"))
    writes = writes_in(driver.schedule_pod("p", "c"))
    early = ClaimsWritten("uid-p", writes.number - 1, tuple(written(writes)))
    assert bound_to(driver.handle(early)) == []
    assert bound_to(driver.answer(writes)) == ["n0"]


def test_a_pod_is_tried_again_when_its_claim_of_an_earlier_process_is_deleted() -> None:
    driver = ClaimDriver()
    owner = OwnerReference("Pod", "p", "uid-p", "v1", controller=True)
    stale = make_claim("p-x")
    metadata = replace(
        stale.metadata,
        annotations={claim_writes.EXTENDED_RESOURCE_CLAIM: "true"},
        owner_references=(owner,),
    )
    driver.show(replace(stale, metadata=metadata))
    (deletion,) = of_type(DeleteClaim, driver.schedule_pod("p", requests={"example.com/gpu": "1"}))
    assert deletion.claim.name == "p-x"
    assert driver.queue_of("p") == "unschedulable"
    driver.handle(DeviceObjectGone("ResourceClaim", "default", "p-x"))
    driver.now += 10.0
    assert writes_in(driver.schedule()).extended is not None


def test_a_claim_that_is_gone_with_its_allocation_lets_others_have_the_devices() -> None:
    """After a gap of the watch, a list shows the end of a claim but not its deallocation."""
    used = [
        allocated(make_claim(f"used{index}"), f"n{index // 2}", f"gpu-{index % 2}")
        for index in range(4)
    ]
    driver = ClaimDriver(make_claim("c"), *used)
    assert of_type(BindClaims, driver.schedule_pod("p", "c")) == []
    assert driver.queue_of("p") == "unschedulable"
    driver.handle(DeviceObjectGone("ResourceClaim", "default", "used2"))
    driver.now += 10.0
    assert writes_in(driver.schedule()).node_name == "n1"


def test_a_claim_that_is_gone_before_its_allocation_was_shown_frees_its_devices() -> None:
    """After a longer gap, the watch has shown nothing of what the scheduler has written."""
    used = [make_claim(f"used{index}") for index in range(4)]
    driver = ClaimDriver(make_claim("c"), *used)
    for each in used:
        name = each.metadata.name
        driver.answer(writes_in(driver.schedule_pod(f"user-of-{name}", name)))
    assert of_type(BindClaims, driver.schedule_pod("p", "c")) == []
    assert driver.queue_of("p") == "unschedulable"
    driver.handle(DeviceObjectGone("ResourceClaim", "default", "used2"))
    assert driver.queue_of("p") == "backoff"
    driver.now += 10.0
    assert len(writes_in(driver.schedule()).claims) == 1


@pytest.mark.parametrize("what", ["claim", "class", "slice"])
def test_deleted_objects_are_forgotten(what: str) -> None:
    driver = ClaimDriver(make_claim("c"))
    gone = {
        "claim": DeviceObjectGone("ResourceClaim", "default", "c"),
        "class": DeviceObjectGone("DeviceClass", "", "gpu"),
        "slice": DeviceObjectGone("ResourceSlice", "", "n0-slice"),
    }
    driver.handle(gone[what])
    if what == "slice":
        assert writes_in(driver.schedule_pod("p", "c")).node_name == "n1"
    else:
        assert of_type(BindClaims, driver.schedule_pod("p", "c")) == []


def test_slices_may_arrive_before_their_node() -> None:
    driver = ClaimDriver(make_claim("c"), make_slice("n9", ["gpu-0"]))
    for name in ("n0", "n1"):
        driver.handle(DeviceObjectGone("ResourceSlice", "", f"{name}-slice"))
    driver.schedule_pod("p", "c")
    driver.now += 10.0
    driver.add_nodes("n9")
    assert writes_in(driver.schedule()).node_name == "n9"
