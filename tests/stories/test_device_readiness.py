"""A pod is bound after its devices are ready; a claim whose device fails is deallocated."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from stowage.api.events import DeviceObjectGone
from stowage.api.instructions import (
    BindingConditionsAwaited,
    DeallocateClaim,
    EmitEvent,
    Instruction,
    ReleaseClaims,
)
from stowage.api.objects.device import (
    AllocatedDeviceStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from stowage.api.objects.meta import Condition
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.values import claim_writes
from tests.stories.claim_driver import ClaimDriver, bound_to, failures, writes_in, written
from tests.support.device_builders import allocated, make_claim, with_version
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
