"""A pod is bound after its claims: writes, waits and failures of volume binding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import pytest
from msgspec.structs import replace

from stowage.api.events import (
    Event,
    NodeGone,
    PendingPodGone,
    StorageGone,
    StorageSeen,
    VolumesWritten,
)
from stowage.api.instructions import (
    BindPod,
    BindVolumes,
    EmitEvent,
    Instruction,
    PatchPodStatus,
    SetSelectedNode,
    StopPreBind,
)
from stowage.api.objects.volume import PersistentVolume, StorageObject
from tests.support.builders import HOSTNAME
from tests.support.engines import DEFAULT_PROFILE, default_engine, of_type
from tests.support.models.engine_driver import EngineDriver
from tests.support.volume_builders import claim_volume, make_claim, make_class, make_volume

PROFILE = {
    **DEFAULT_PROFILE,
    "pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 30}}],
}
FAILED = 'running PreBind plugin "VolumeBinding": binding volumes: '


class VolumeDriver(EngineDriver):
    """An engine with two nodes and a storage class."""

    def __init__(self, *objects: StorageObject) -> None:
        super().__init__(partial(default_engine, profile=PROFILE))
        self.numbers: dict[str, int] = {}
        self.add_nodes("n0", "n1")
        self.show(make_class(), *objects)

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        for each in of_type(BindVolumes, instructions):
            self.numbers[each.pod.uid] = each.number

    def show(self, *objects: StorageObject) -> list[Instruction]:
        """Show storage objects to the engine."""
        return self.handle(*(StorageSeen(obj) for obj in objects))

    def schedule_pod(self, name: str, *claims: str) -> list[Instruction]:
        """Create a pod with these claims and schedule it."""
        self.create_pods(name, volumes=tuple(claim_volume(claim) for claim in claims))
        return self.schedule()

    def write(self, name: str = "p", error: str = "", **versions: str) -> list[Instruction]:
        """Report written claims and volumes; keywords are resource versions by name."""
        volumes = {key: each for key, each in versions.items() if key.startswith("d")}
        claims = {f"default/{key}": each for key, each in versions.items() if key not in volumes}
        uid = f"uid-{name}"
        return self.handle(VolumesWritten(uid, self.numbers.get(uid, 0), volumes, claims, error))

    @property
    def assumed(self) -> dict[str, str]:
        """The claims and volumes with assumed writes, and the pod each is assumed for."""
        assumed: dict[str, str] = self.engine.dump()["storage_assumed"]
        return assumed


def failures(instructions: Sequence[Instruction]) -> list[str]:
    """The notes of FailedScheduling events."""
    events = of_type(EmitEvent, instructions)
    return [event.note for event in events if event.reason == "FailedScheduling"]


def waiting(selected: str = "n0") -> VolumeDriver:
    """A driver with a pod whose claim has a selected node and no volume yet."""
    driver = VolumeDriver(make_claim("claim", version="1"))
    (writes,) = of_type(BindVolumes, driver.schedule_pod("p", "claim"))
    assert writes.node_name == "n0"
    assert writes.claims == (SetSelectedNode("default", "claim", "uid-claim", "1"),)
    assert driver.assumed == {"claim default/claim": "default/p"}
    driver.write(claim="2")
    driver.show(make_claim("claim", selected_node=selected, version="2"))
    return driver


MADE = make_volume("d-made", given_to="claim", where=(HOSTNAME, ["n0"]), version="3")
BOUND = make_claim("claim", volume="d-made", selected_node="n0", version="4")


def test_a_pod_is_bound_once_its_new_volume_is_bound() -> None:
    driver = waiting()
    assert driver.assumed == {}
    assert of_type(BindPod, driver.show(MADE)) == []
    not_done = make_claim("claim", volume="d-made", selected_node="n0", version="3", is_bound=False)
    assert of_type(BindPod, driver.show(not_done)) == []
    (bind,) = of_type(BindPod, driver.show(BOUND))
    assert (bind.pod.name, bind.node_name) == ("p", "n0")
    driver.check_replay()


def test_a_pod_waits_for_a_volume_that_arrives_after_its_claim() -> None:
    driver = waiting()
    assert of_type(BindPod, driver.show(BOUND)) == []
    assert len(of_type(BindPod, driver.show(MADE))) == 1


def test_a_stale_claim_version_does_not_fail_the_binding() -> None:
    """The claim's old version has no node; only a later one may report failed provisioning."""
    driver = VolumeDriver(make_claim("claim", version="1"))
    driver.schedule_pod("p", "claim")
    assert failures(driver.write(claim="7")) == []
    stale = make_claim("claim", version="3")
    assert failures(driver.show(stale)) == []
    failed = make_claim("claim", version="8")
    assert len(failures(driver.show(failed))) == 1


def test_a_free_volume_is_given_to_one_claim_only() -> None:
    driver = VolumeDriver(
        make_volume("disk", version="1", where=(HOSTNAME, ["n1"])),
        make_class(provisioner="kubernetes.io/no-provisioner"),
        make_claim("one"),
        make_claim("two"),
    )
    (writes,) = of_type(BindVolumes, driver.schedule_pod("p", "one"))
    (give,) = writes.volumes
    assert (give.name, give.claim_ref.name, give.sets_bound_by_controller) == ("disk", "one", True)
    assert writes.node_name == "n1"
    refused = failures(driver.schedule_pod("q", "two"))
    assert "2 node(s) didn't find available persistent volumes to bind" in refused[0]
    driver.write(disk="2")
    given = make_volume("disk", version="2", given_to="one", where=(HOSTNAME, ["n1"]))
    assert of_type(BindPod, driver.show(given)) == []
    (bind,) = of_type(BindPod, driver.show(make_claim("one", volume="disk", version="3")))
    assert bind.node_name == "n1"
    driver.check_replay()


def _given(version: str, given_to: str = "") -> PersistentVolume:
    return make_volume("disk", version=version, where=(HOSTNAME, ["n0"]), given_to=given_to)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            StorageSeen(make_claim("claim", version="5")),
            'selectedNode annotation reset for PVC "claim"',
        ),
        (
            StorageSeen(make_claim("claim", selected_node="n1", version="5")),
            'provisioning failed for PVC "claim"',
        ),
        (
            StorageGone("PersistentVolumeClaim", "default", "claim"),
            (
                "failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "
                '"default/claim"'
            ),
        ),
        (NodeGone("n0"), 'failed to get node "n0": node "n0" not found'),
    ],
)
def test_a_pod_is_requeued_if_provisioning_fails(event: Event, message: str) -> None:
    driver = waiting()
    assert failures(driver.handle(event)) == [FAILED + message]
    assert driver.assumed == {}
    assert driver.engine.in_flight() == 0
    driver.check_replay()


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            StorageGone("PersistentVolume", "", "disk"),
            'failed to check binding: could not find v1.PersistentVolume "disk"',
        ),
        (
            StorageGone("PersistentVolumeClaim", "default", "claim"),
            'failed to check binding: could not find v1.PersistentVolumeClaim "default/claim"',
        ),
        (StorageSeen(_given("5")), 'ClaimRef got reset for pv "disk"'),
        (
            StorageSeen(make_claim("claim", uid="another", version="5")),
            'PVC "default/claim" was deleted and created again',
        ),
        (
            StorageSeen(make_volume("disk", version="5", where=(HOSTNAME, ["n1"]))),
            'pv "disk" node affinity doesn\'t match node "n0": no matching NodeSelectorTerms',
        ),
    ],
)
def test_a_pod_is_requeued_if_its_volume_or_claim_is_lost(event: Event, message: str) -> None:
    driver = VolumeDriver(_given("1"), make_claim("claim", version="1"))
    driver.schedule_pod("p", "claim")
    driver.write(disk="2")
    driver.show(_given("2", given_to="claim"))
    assert failures(driver.handle(event)) == [FAILED + message]
    assert driver.assumed == {}
    driver.check_replay()


def test_a_claim_bound_to_another_volume_is_accepted_if_the_node_can_use_it() -> None:
    for where, is_bound in (("n0", True), ("n1", False)):
        driver = VolumeDriver(_given("1"), make_claim("claim", version="1"))
        driver.schedule_pod("p", "claim")
        driver.write(disk="2")
        driver.show(_given("2", given_to="claim"))
        other = make_volume("other", given_to="claim", where=(HOSTNAME, [where]), version="3")
        answer = driver.show(other, make_claim("claim", volume="other", version="4"))
        assert bool(of_type(BindPod, answer)) is is_bound
        assert bool(failures(answer)) is not is_bound


def test_a_refused_write_restores_all_assumptions() -> None:
    driver = VolumeDriver(_given("1"), make_claim("claim", version="1"))
    driver.schedule_pod("p", "claim")
    assert driver.assumed == {"volume disk": "default/p"}
    answer = driver.write(error="the object has been modified")
    assert failures(answer) == [
        'running PreBind plugin "VolumeBinding": the object has been modified'
    ]
    assert driver.assumed == {}
    driver.advance(2.0)
    assert len(of_type(BindVolumes, driver.schedule())) == 1


def test_the_pod_is_retried_after_a_failed_provisioning() -> None:
    driver = waiting()
    driver.show(make_claim("claim", version="5"))
    driver.advance(2.0)
    (again,) = of_type(BindVolumes, driver.schedule())
    assert again.claims[0].resource_version == "5"
    driver.write(claim="6")
    driver.show(make_claim("claim", selected_node="n0", version="6"))
    bound = replace(BOUND, metadata=replace(BOUND.metadata, resource_version="8"))
    (bind,) = of_type(BindPod, driver.show(MADE, bound))
    assert bind.node_name == "n0"
    driver.check_replay()


def test_a_pod_waits_for_volumes_until_the_configured_bind_timeout() -> None:
    driver = waiting()
    assert driver.engine.next_deadline() == 30.0
    assert failures(driver.advance(29.5)) == []
    assert failures(driver.advance(0.5)) == [FAILED + "context deadline exceeded"]
    assert driver.engine.volume_error_counts() == {"bind": 1}
    driver.check_replay()


def test_deleting_the_pod_restores_all_assumptions() -> None:
    driver = VolumeDriver(_given("1"), make_claim("claim", version="1"))
    driver.schedule_pod("p", "claim")
    answer = driver.handle(PendingPodGone("default", "p", "uid-p"))
    assert len(of_type(StopPreBind, answer)) == 1
    assert driver.assumed == {}
    assert driver.write(disk="2") == []
    assert len(of_type(BindVolumes, driver.schedule_pod("q", "claim"))) == 1


def test_a_pod_whose_claims_are_bound_is_bound_at_once() -> None:
    driver = VolumeDriver(MADE, BOUND)
    answer = driver.schedule_pod("p", "claim")
    assert of_type(BindVolumes, answer) == []
    (bind,) = of_type(BindPod, answer)
    assert bind.node_name == "n0"


def test_a_volume_that_a_failed_binding_gives_back_goes_to_the_pod_that_lacked_it() -> None:
    local = make_class("local", provisioner="kubernetes.io/no-provisioner")
    claims = (make_claim("c", "local", version="1"), make_claim("e", "local", version="1"))
    driver = VolumeDriver(local, *claims, make_volume("d", "local", version="1"))
    driver.schedule_pod("p", "c")
    (text,) = failures(driver.schedule_pod("q", "e"))
    assert "node(s) didn't find available persistent volumes to bind" in text
    driver.now += 60.0
    assert driver.schedule() == []
    driver.write("p", error="conflict")
    (writes,) = of_type(BindVolumes, driver.schedule())
    assert [(each.name, each.claim_ref.name) for each in writes.volumes] == [("d", "e")]


def test_a_claim_that_a_failed_binding_gives_back_lets_its_other_pod_go_to_another_node() -> None:
    driver = VolumeDriver(make_claim("shared", version="1"))
    driver.schedule_pod("p", "shared")
    driver.create_pods("q", volumes=(claim_volume("shared"),), node_selector={HOSTNAME: "n1"})
    (text,) = failures(driver.schedule())
    assert "node(s) didn't find available persistent volumes to bind" in text
    driver.now += 60.0
    driver.write("p", error="conflict")
    (writes,) = of_type(BindVolumes, driver.schedule(1))
    assert (writes.pod.name, writes.node_name) == ("q", "n1")


@pytest.mark.parametrize(
    ("objects", "written", "shown", "resource"),
    [
        (
            (),
            {"claim": "2"},
            make_claim("claim", selected_node="n0", version="2"),
            'persistentvolumeclaims "claim"',
        ),
        (
            (make_class(provisioner="kubernetes.io/no-provisioner"), _given("1")),
            {"disk": "2"},
            _given("2", given_to="claim"),
            'persistentvolumes "disk"',
        ),
    ],
    ids=["provisioned", "given"],
)
def test_a_pod_that_shares_a_claim_conflicts_with_the_write_for_the_first_until_it_is_shown(
    objects: Sequence[StorageObject],
    written: Mapping[str, str],
    shown: StorageObject,
    resource: str,
) -> None:
    driver = VolumeDriver(make_claim("claim", version="1"), *objects)
    for name in ("p", "q"):
        driver.schedule_pod(name, "claim")
    driver.write("p", **written)
    text = f"Operation cannot be fulfilled on {resource}: the object has been modified; "
    text += "please apply your changes to the latest version and try again"
    assert failures(driver.write("q")) == [f'running PreBind plugin "VolumeBinding": {text}']
    driver.show(shown)
    driver.advance(2.0)
    assert [each.pod.name for each in of_type(BindVolumes, driver.schedule())] == ["q"]
    assert failures(driver.write("q")) == []


def test_writes_of_an_ended_attempt_do_not_count_for_the_next() -> None:
    driver = VolumeDriver(make_claim("c"))
    driver.schedule_pod("p", "c")
    ended = driver.numbers["uid-p"]
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    (write,) = of_type(BindVolumes, driver.schedule_pod("p", "c"))
    assert driver.handle(VolumesWritten("uid-p", ended, error="conflict")) == []
    (patch,) = of_type(
        PatchPodStatus, driver.handle(VolumesWritten("uid-p", write.number, error="conflict"))
    )
    assert patch.message == 'running PreBind plugin "VolumeBinding": conflict'
