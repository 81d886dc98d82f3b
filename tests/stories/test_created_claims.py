"""The devices of a claim that is created for extended resources are given to one pod only."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.api.events import (
    ClaimDeletionFinished,
    ClaimsWritten,
    DeviceObjectGone,
    PendingPodGone,
)
from stowage.api.instructions import BindClaims, DeleteClaim, Instruction
from stowage.api.objects.device import ResourceClaim
from stowage.api.values import claim_writes
from tests.stories.claim_driver import ClaimDriver, bound_to, failures, writes_in
from tests.support.device_builders import with_version
from tests.support.engines import of_type

REQUESTS = {"example.com/gpu": "1"}
#: As many devices as one node has.
WHOLE_NODE = {"example.com/gpu": "2"}
GONE = DeviceObjectGone("ResourceClaim", "default", "p-x")


def created_claim(writes: BindClaims) -> ResourceClaim:
    """The claim of the pod after it was created and allocated."""
    assert writes.extended is not None
    created = claim_writes.extended_claim(writes.pod, writes.extended)
    meta = replace(created.metadata, name="p-x", uid="uid-p-x", resource_version="3")
    status = replace(created.status, allocation=writes.extended.allocation)
    return replace(created, metadata=meta, status=status)


def without_devices(claim: ResourceClaim, version: str = "2") -> ResourceClaim:
    return with_version(claim_writes.deallocated(claim), version)


class CreatedClaimDriver(ClaimDriver):
    """An engine with two nodes of two devices each, and a pod whose claim is to be created.

    Attributes:
        writes: The writes for the pod.
        created: The claim as the API server answers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.writes = writes_in(self.schedule_pod("p", requests=WHOLE_NODE))
        self.created = created_claim(self.writes)

    def report(self, error: str = "") -> list[Instruction]:
        """The claim was created and allocated; what follows may have failed."""
        return self.handle(ClaimsWritten("uid-p", self.writes.number, (), self.created, error))

    def fail(self) -> DeleteClaim:
        """The claim is created, but the patch of the pod's status is refused."""
        (deletion,) = of_type(DeleteClaim, self.report("update pod default/p: conflict"))
        return deletion

    def give_up_before_the_answer(self) -> DeleteClaim:
        """The pod is gone while its claim is being created."""
        self.handle(PendingPodGone("default", "p", "uid-p"))
        (deletion,) = of_type(DeleteClaim, self.report("the pod is gone"))
        return deletion

    def wait_in_vain(self) -> DeleteClaim:
        """The watch does not show the created claim in time."""
        assert self.report() == []
        (deletion,) = of_type(DeleteClaim, self.advance(31.0))
        return deletion

    def end_badly(self, how: str) -> DeleteClaim:
        """The attempt ends without a binding."""
        deletion: DeleteClaim = getattr(self, how)()
        return deletion

    def holds(self) -> bool:
        """Whether the devices of the created claim are in flight."""
        return "uid-p-x" in self.in_flight

    def nodes_for_others(self) -> list[str]:
        """The nodes whose devices two further pods get, each of them all devices of a node."""
        answers = [self.schedule_pod(name, requests=WHOLE_NODE) for name in ("q", "r")]
        return [each.node_name for answer in answers for each in of_type(BindClaims, answer)]


WAYS = pytest.mark.parametrize("how", ["fail", "give_up_before_the_answer", "wait_in_vain"])


def test_a_pod_waits_until_the_watch_shows_its_claim() -> None:
    driver = CreatedClaimDriver()
    assert bound_to(driver.report()) == []
    # A version without the devices is not enough: they would seem to be free.
    assert bound_to(driver.show(without_devices(driver.created))) == []
    assert driver.holds()
    assert bound_to(driver.show(driver.created)) == ["n0"]
    assert driver.in_flight == set()


def test_a_claim_that_was_created_without_devices_holds_none() -> None:
    driver = CreatedClaimDriver()
    driver.created = without_devices(driver.created)
    deletion = driver.fail()
    assert deletion.claim.name == "p-x"
    assert driver.in_flight == set()


@WAYS
def test_the_devices_stay_taken_while_the_claim_is_being_deleted(how: str) -> None:
    driver = CreatedClaimDriver()
    deletion = driver.end_badly(how)
    assert (deletion.pod.name, deletion.claim.name) == ("p", "p-x")
    assert driver.holds()
    assert driver.nodes_for_others() == ["n1"]
    driver.check_replay()


@WAYS
def test_the_devices_are_free_when_the_claim_is_deleted(how: str) -> None:
    driver = CreatedClaimDriver()
    deletion = driver.end_badly(how)
    driver.nodes_for_others()
    assert driver.queue_of("r") == "unschedulable"
    driver.handle(ClaimDeletionFinished(deletion.claim))
    assert not driver.holds()
    assert driver.queue_of("r") == "backoff"


@WAYS
def test_a_claim_that_the_watch_shows_has_its_devices_until_it_is_gone(how: str) -> None:
    driver = CreatedClaimDriver()
    deletion = driver.end_badly(how)
    driver.show(driver.created)
    assert not driver.holds()
    driver.handle(ClaimDeletionFinished(deletion.claim))
    assert driver.nodes_for_others() == ["n1"]
    driver.handle(GONE)
    assert driver.queue_of("r") == "backoff"


def test_a_claim_that_the_watch_has_shown_before_the_answer_is_not_counted_twice() -> None:
    driver = CreatedClaimDriver()
    driver.show(driver.created)
    driver.fail()
    assert not driver.holds()
    devices = driver.engine.state.cache.snapshot().devices
    assert sorted(devices.allocated.whole.values()) == [1, 1]


def test_a_pod_is_bound_at_once_if_the_watch_has_shown_its_claim_before_the_answer() -> None:
    driver = CreatedClaimDriver()
    driver.show(driver.created)
    assert bound_to(driver.report()) == ["n0"]
    assert driver.in_flight == set()


def test_the_end_of_a_claim_that_was_shown_without_devices_frees_them() -> None:
    """After a gap of the watch, a list shows neither the allocation nor the claim."""
    driver = CreatedClaimDriver()
    driver.fail()
    driver.nodes_for_others()
    driver.show(without_devices(driver.created))
    assert driver.holds()
    driver.handle(GONE)
    assert not driver.holds()
    assert driver.queue_of("r") == "backoff"


def test_the_devices_are_free_when_the_claim_is_shown_deallocated() -> None:
    driver = CreatedClaimDriver()
    driver.fail()
    driver.nodes_for_others()
    driver.show(without_devices(driver.created, version="4"))
    assert not driver.holds()
    assert driver.queue_of("r") == "backoff"


def test_a_deletion_that_fails_is_tried_again_until_the_claim_is_gone() -> None:
    """Nothing is ever shown of a claim that is created and deleted within a gap of the watch."""
    driver = CreatedClaimDriver()
    deletion = driver.give_up_before_the_answer()
    for _ in range(3):
        driver.handle(ClaimDeletionFinished(deletion.claim, "503"))
        assert driver.holds()
        assert driver.engine.next_deadline() == driver.now + 30.0
        assert of_type(DeleteClaim, driver.advance(29.0)) == []
        assert of_type(DeleteClaim, driver.advance(1.0)) == [deletion]
        assert of_type(DeleteClaim, driver.advance(31.0)) == []
    driver.handle(ClaimDeletionFinished(deletion.claim))
    assert not driver.holds()
    assert driver.engine.next_deadline() is None


def test_the_deletion_of_another_claim_frees_no_devices() -> None:
    driver = CreatedClaimDriver()
    deletion = driver.fail()
    for other in (replace(deletion.claim, uid="uid-other"), replace(deletion.claim, name="other")):
        driver.handle(ClaimDeletionFinished(other))
    assert driver.holds()


def test_a_pod_that_is_tried_again_gets_other_devices_while_its_first_claim_exists() -> None:
    driver = CreatedClaimDriver()
    driver.fail()
    driver.now += 10.0
    assert writes_in(driver.schedule()).node_name == "n1"


@pytest.mark.parametrize("is_created", [True, False])
def test_a_pod_that_comes_back_waits_until_the_writes_for_it_have_ended(is_created: bool) -> None:
    """Else the devices of its first attempt would be free while its claim is being created."""
    driver = CreatedClaimDriver()
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    (text,) = failures(driver.schedule_pod("p", requests=WHOLE_NODE))
    assert "is in the process of being created" in text
    assert driver.nodes_for_others() == ["n1"]
    if is_created:
        (deletion,) = of_type(DeleteClaim, driver.report("the pod is gone"))
        assert driver.holds()
        driver.handle(ClaimDeletionFinished(deletion.claim))
    else:
        driver.handle(ClaimsWritten("uid-p", driver.writes.number, (), None, "the pod is gone"))
    assert driver.in_flight == {"uid-q/<extended-resources>"}
    driver.now += 10.0
    assert [each.node_name for each in of_type(BindClaims, driver.schedule())] == ["n0"]
    driver.check_replay()
