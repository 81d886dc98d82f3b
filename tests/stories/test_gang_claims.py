"""Members of a pod group share a claim: the first one reserves its devices for all of them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stowage.api.events import ClaimsWritten, PendingPodGone, PendingPodSeen, PodGroupSeen
from stowage.api.instructions import BindClaims, DeallocateClaim, DeleteClaim, Instruction
from stowage.api.objects.device import ResourceClaim, ResourceClaimConsumerReference
from stowage.api.objects.meta import OwnerReference
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import PodSchedulingGroup
from stowage.api.values.claim_writes import (
    EXTENDED_RESOURCE_CLAIM,
    deallocated,
    with_finalizer,
    with_reservation,
)
from tests.stories.claim_driver import WRITTEN_AT, ClaimDriver, bound_to, failures
from tests.stories.gang_driver import make_group
from tests.support.device_builders import (
    allocated,
    make_claim,
    pod_with_claims,
    request,
    with_version,
)
from tests.support.engines import of_type


def shared_by(
    num_pods: int, *own: ResourceClaim, **fields: Any
) -> tuple[ClaimDriver, list[Instruction]]:
    """A gang with the claim ``c``; its member i has the i-th of these claims as well."""
    driver = ClaimDriver(make_claim("c"), *own)
    driver.handle(PodGroupSeen(make_group(min_count=num_pods)))
    for index in range(num_pods):
        names = ["c", *(each.metadata.name for each in own[index : index + 1])]
        group = PodSchedulingGroup("g")
        pod = pod_with_claims(f"p{index}", *names, scheduling_group=group, **fields)
        driver.handle(PendingPodSeen(pod))
    return driver, driver.schedule()


def written_by_server(known: dict[str, ResourceClaim], writes: BindClaims) -> ClaimsWritten:
    """The answer to writes, each of the latest version of a claim."""
    for each in writes.claims:
        claim = known.get(each.claim.metadata.name, each.claim)
        claim = with_reservation(with_finalizer(claim), each, writes.pod, WRITTEN_AT)
        version = str(int(claim.metadata.resource_version) + 1)
        known[each.claim.metadata.name] = with_version(claim, version)
    claims = tuple(known[each.claim.metadata.name] for each in writes.claims)
    return ClaimsWritten(writes.pod.uid, writes.number, claims)


def test_members_share_the_devices_of_one_claim() -> None:
    driver, answer = shared_by(3)
    writes = of_type(BindClaims, answer)
    assert sorted(each.pod.name for each in writes) == ["p0", "p1", "p2"]
    allocations = [each.claims[0].allocation for each in writes]
    assert allocations[0] is not None
    assert allocations == [allocations[0]] * 3
    assert len(driver.engine.state.cache.snapshot().devices.allocated.whole) == 1
    known: dict[str, ResourceClaim] = {}
    nodes = {bound_to(driver.handle(written_by_server(known, each)))[0] for each in writes}
    assert len(nodes) == 1
    assert {each.name for each in known["c"].status.reserved_for} == {"p0", "p1", "p2"}
    assert driver.in_flight == set()
    driver.engine.validate()
    driver.check_replay()


def test_a_member_that_fits_only_elsewhere_does_not_share() -> None:
    """All members have to be where the devices are, which is one node."""
    driver, answer = shared_by(3, cpu="2")
    assert of_type(BindClaims, answer) == []
    (text,) = {each for each in failures(answer) if "resourceclaim" in each}
    assert "1 resourceclaim not available on the node" in text
    assert driver.in_flight == set()


def test_members_with_claims_of_their_own_share_one_more() -> None:
    own = [make_claim(f"own{index}") for index in range(2)]
    driver, answer = shared_by(2, *own)
    assert of_type(BindClaims, answer) == []
    assert "cannot allocate all claims" in " ".join(failures(answer))
    driver, answer = shared_by(2, own[0])
    assert sorted(len(each.claims) for each in of_type(BindClaims, answer)) == [1, 2]
    assert driver.in_flight == {"uid-c", "uid-own0"}


def pools_for_others(driver: ClaimDriver) -> list[str]:
    """The pools of the devices that two further pods get, each of them all devices of a node."""
    driver.show(make_claim("d", request("r", count=2)), make_claim("e", request("r", count=2)))
    answers = [driver.schedule_pod("q", "d"), driver.schedule_pod("r", "e")]
    return [
        result.pool
        for answer in answers
        for each in of_type(BindClaims, answer)
        for claim in each.claims
        if claim.allocation is not None
        for result in claim.allocation.devices.results
    ]


def test_the_devices_stay_in_flight_while_a_companion_writes_them() -> None:
    driver, answer = shared_by(2)
    first, second = of_type(BindClaims, answer)
    driver.handle(PendingPodGone("default", first.pod.name, first.pod.uid))
    driver.handle(ClaimsWritten(first.pod.uid, first.number, error="the pod is gone"))
    assert driver.in_flight == {"uid-c"}
    assert pools_for_others(driver) == ["n1", "n1"]
    assert bound_to(driver.handle(written_by_server({}, second))) == ["n0"]
    driver.engine.validate()


def test_a_claim_that_is_taken_back_before_a_companion_has_reserved_it_keeps_its_devices() -> None:
    """The first member has written it and is gone; the second one writes the allocation again."""
    driver, answer = shared_by(2)
    first, second = of_type(BindClaims, answer)
    known: dict[str, ResourceClaim] = {}
    driver.handle(written_by_server(known, first))
    driver.handle(PendingPodGone("default", first.pod.name, first.pod.uid))
    known["c"] = with_version(deallocated(known["c"]), "7")
    driver.show(known["c"])
    assert driver.in_flight == {"uid-c"}
    assert pools_for_others(driver) == ["n1", "n1"]
    assert bound_to(driver.handle(written_by_server(known, second))) == ["n0"]
    driver.show(known["c"])
    assert "uid-c" not in driver.in_flight
    assert set(driver.engine.state.cache.snapshot().devices.allocated.whole.values()) == {1}
    driver.engine.validate()
    driver.check_replay()


def test_devices_are_free_when_no_member_can_use_them() -> None:
    driver, answer = shared_by(2)
    for each in of_type(BindClaims, answer):
        driver.answer(each, "refused")
    assert driver.in_flight == set()
    assert driver.engine.state.cache.snapshot().devices.allocated.whole == {}


def test_a_pod_outside_of_the_group_waits_for_the_claim() -> None:
    driver, _ = shared_by(2)
    (text,) = failures(driver.schedule_pod("other", "c"))
    assert "resource claim default/c is in the process of being allocated" in text


def test_a_late_member_waits_until_the_claim_is_written() -> None:
    driver, answer = shared_by(2)
    late = pod_with_claims("late", "c", scheduling_group=PodSchedulingGroup("g"))
    driver.handle(PendingPodSeen(late))
    (text,) = failures(driver.schedule())
    assert "resource claim default/c is in the process of being allocated" in text
    known: dict[str, ResourceClaim] = {}
    for each in of_type(BindClaims, answer):
        driver.handle(written_by_server(known, each))
    driver.now += 10.0
    (writes,) = of_type(BindClaims, driver.schedule())
    assert (writes.pod.name, writes.claims[0].allocation) == ("late", None)
    assert bound_to(driver.handle(written_by_server(known, writes))) == ["n0"]
    assert known["c"].status.reserved_for[-1].name == "late"


def test_a_claim_that_a_member_cannot_use_where_it_is_allocated_is_deallocated() -> None:
    claim = allocated(make_claim("c"), "gone", "gpu-0", version="7")
    assert claim.status.allocation is not None
    there = NodeSelectorTerm(
        match_fields=(NodeSelectorRequirement("metadata.name", "In", ("gone",)),)
    )
    allocation = replace(claim.status.allocation, node_selector=NodeSelector((there,)))
    consumer = ResourceClaimConsumerReference(resource="pods", name="p", uid="uid-p")
    status = replace(claim.status, allocation=allocation, reserved_for=(consumer,))
    driver = ClaimDriver(replace(claim, status=status))
    driver.handle(PodGroupSeen(make_group(min_count=1)))
    answer = driver.schedule_pod("p", "c", scheduling_group=PodSchedulingGroup("g"))
    (deallocation,) = of_type(DeallocateClaim, answer)
    assert (deallocation.claim.name, deallocation.claim.resource_version) == ("c", "7")
    driver.show(with_version(deallocated(claim), "8"))
    driver.now += 10.0
    (writes,) = of_type(BindClaims, driver.schedule())
    assert writes.claims[0].allocation is not None


def test_a_claim_that_an_earlier_attempt_left_behind_for_a_member_is_deleted() -> None:
    owner = OwnerReference("Pod", "p", "uid-p", "v1", controller=True)
    stale = make_claim("p-x")
    metadata = replace(
        stale.metadata, annotations={EXTENDED_RESOURCE_CLAIM: "true"}, owner_references=(owner,)
    )
    driver = ClaimDriver(replace(stale, metadata=metadata))
    driver.handle(PodGroupSeen(make_group(min_count=1)))
    answer = driver.schedule_pod(
        "p", requests={"example.com/gpu": "1"}, scheduling_group=PodSchedulingGroup("g")
    )
    assert [each.claim.name for each in of_type(DeleteClaim, answer)] == ["p-x"]
