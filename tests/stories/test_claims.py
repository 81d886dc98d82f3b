"""A pod is bound after its resource claims: allocation, writes, waits and failures."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from stowage.api.events import (
    BindFailed,
    ClaimsWritten,
    DeviceObjectGone,
    NodeSeen,
    PendingPodGone,
)
from stowage.api.instructions import (
    BindClaims,
    BindingConditionsAwaited,
    DeallocateClaim,
    DeleteClaim,
    EmitEvent,
    Instruction,
    PatchPodStatus,
    ReleaseClaims,
)
from stowage.api.objects.device import (
    AllocatedDeviceStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from stowage.api.objects.meta import Condition, OwnerReference
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
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


def ready(claim: ResourceClaim, version: str, **conditions: str) -> ResourceClaim:
    """The claim with conditions of all its devices."""
    listed = tuple(Condition(name, value, "R", "m") for name, value in conditions.items())
    allocation = claim.status.allocation
    assert allocation is not None
    devices = tuple(
        AllocatedDeviceStatus(each.driver, each.pool, each.device, conditions=listed)
        for each in allocation.devices.results
    )
    return with_version(replace(claim, status=replace(claim.status, devices=devices)), version)


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


CONDITIONS = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}


def waiting() -> tuple[ClaimDriver, ResourceClaim]:
    """A driver with a pod whose claim is written and whose device is not ready."""
    driver = ClaimDriver(make_claim("c"), **CONDITIONS)
    writes = writes_in(driver.schedule_pod("p", "c"))
    answer = driver.answer(writes)
    assert bound_to(answer) == []
    (event,) = [each for each in of_type(EmitEvent, answer) if each.event_type == "Normal"]
    assert (event.reason, event.note) == (
        "BindingConditionsPending",
        "waiting for binding conditions for device on node n0",
    )
    return driver, written(writes)[0]


def waits(instructions: Sequence[Instruction]) -> list[tuple[tuple[str, ...], str]]:
    found = of_type(BindingConditionsAwaited, instructions)
    return [(each.drivers, each.status) for each in found]


def test_a_pod_waits_until_its_device_is_ready() -> None:
    driver, claim = waiting()
    assert bound_to(driver.show(ready(claim, "6", ready="False"))) == []
    answer = driver.show(ready(claim, "7", ready="True"))
    assert bound_to(answer) == ["n0"]
    assert of_type(EmitEvent, answer) == []
    assert waits(answer) == [(("gpu.example.com",), "success")]
    driver.check_replay()


def test_the_wait_for_a_device_is_measured() -> None:
    driver = ClaimDriver(make_claim("c"), **CONDITIONS)
    driver.engine.state.timer = lambda: driver.now
    writes = writes_in(driver.schedule_pod("p", "c"))
    driver.answer(writes)
    driver.advance(7.0)
    answer = driver.show(ready(written(writes)[0], "7", ready="True"))
    assert [each.duration_s for each in of_type(BindingConditionsAwaited, answer)] == [7.0]


def test_a_device_that_fails_ends_the_wait_and_the_claim_keeps_its_allocation() -> None:
    driver, claim = waiting()
    answer = driver.show(ready(claim, "6", broken="True"))
    text = f'{FAILED}device binding failed: claim=c, reason=R, message="m"'
    assert failures(answer) == [text]
    assert waits(answer) == [(("gpu.example.com",), "failed")]
    (release,) = of_type(ReleaseClaims, answer)
    assert [each.name for each in release.claims] == ["c"]


def test_a_claim_that_failed_ends_the_wait_when_the_claims_before_it_are_ready() -> None:
    driver = ClaimDriver(make_claim("c"), make_claim("d"), **CONDITIONS)
    writes = writes_in(driver.schedule_pod("p", "c", "d"))
    driver.answer(writes)
    first, second = written(writes)
    answer = driver.show(ready(second, "6", broken="True"))
    assert (failures(answer), bound_to(answer)) == ([], [])
    answer = driver.show(ready(first, "7", ready="True"))
    assert failures(answer) == [f'{FAILED}device binding failed: claim=d, reason=R, message="m"']
    driver.check_replay()


def test_a_device_that_is_not_ready_in_time_ends_the_wait() -> None:
    driver, _ = waiting()
    assert driver.engine.next_deadline() == 30.0
    answer = driver.advance(31.0)
    assert failures(answer) == [f"{FAILED}device binding timeout: claim=c"]
    assert waits(answer) == [(("gpu.example.com",), "timeout")]


def test_a_pod_is_not_bound_if_its_claim_is_gone_before_its_device_is_ready() -> None:
    driver, _ = waiting()
    driver.now = 7.0
    answer = driver.handle(DeviceObjectGone("ResourceClaim", "default", "c"))
    assert failures(answer) == [f'{FAILED}could not find ResourceClaim "default/c"']
    assert waits(answer)[0][1] == "failed"
    assert bound_to(answer) == []
    driver.check_replay()


def test_a_pod_is_not_bound_if_its_claim_is_deallocated_before_its_device_is_ready() -> None:
    driver, claim = waiting()
    assert bound_to(driver.show(with_version(claim_writes.deallocated(claim), "6"))) == []
    assert failures(driver.advance(31.0)) == [f"{FAILED}device binding timeout: claim=c"]


def test_a_replay_reads_the_recorded_wall_clock() -> None:
    driver, claim = waiting()
    driver.wall_time_s = 31.0
    answer = driver.show(ready(claim, "6", ready="False"))
    assert failures(answer) == [f"{FAILED}device binding timeout: claim=c"]
    driver.check_replay()


def test_the_claim_of_a_failed_device_is_deallocated_at_the_next_attempt() -> None:
    driver, claim = waiting()
    failed = ready(claim, "6", broken="True")
    driver.show(failed)
    driver.show(with_version(claim_writes.without_consumer(failed, "uid-p"), "7"))
    driver.now += 10.0
    (deallocation,) = of_type(DeallocateClaim, driver.schedule())
    assert (deallocation.claim.name, deallocation.claim.resource_version) == ("c", "7")
    driver.show(with_version(claim_writes.deallocated(failed), "8"))
    driver.now += 10.0
    assert writes_in(driver.schedule()).claims[0].allocation is not None


def test_a_deallocated_claim_is_not_used_before_the_watch_shows_it() -> None:
    """The node of its devices comes back before the watch shows the deallocation."""
    claim = allocated(make_claim("c"), "n2", "gpu-0", version="7")
    assert claim.status.allocation is not None
    here = NodeSelectorRequirement("metadata.name", "In", ("n2",))
    selector = NodeSelector((NodeSelectorTerm(match_fields=(here,)),))
    only = replace(claim.status.allocation, node_selector=selector)
    consumer = ResourceClaimConsumerReference(resource="pods", name="p", uid="uid-p")
    status = replace(claim.status, allocation=only, reserved_for=(consumer,))
    driver = ClaimDriver(replace(claim, status=status))
    (deallocation,) = of_type(DeallocateClaim, driver.schedule_pod("p", "c"))
    assert deallocation.claim.resource_version == "7"
    driver.now += 10.0
    driver.add_nodes("n2")
    answer = driver.schedule()
    assert [each.claim.metadata.resource_version for each in writes_in(answer).claims] == ["7"]
    assert bound_to(answer) == []


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
