"""A pod with a volume and a claim for devices is bound when both are written."""

from __future__ import annotations

from functools import partial

from stowage.api.events import (
    ClaimsWritten,
    DeviceObjectSeen,
    PendingPodGone,
    PendingPodSeen,
    StorageSeen,
    VolumesWritten,
)
from stowage.api.instructions import BindClaims, BindPod, BindVolumes, Instruction, ReleaseClaims
from tests.stories.claim_driver import written
from tests.support import device_builders, volume_builders
from tests.support.builders import HOSTNAME
from tests.support.device_builders import make_slice, pod_with_claims
from tests.support.engines import DEFAULT_PROFILE, default_engine, of_type
from tests.support.models.engine_driver import EngineDriver
from tests.support.volume_builders import claim_volume, make_volume


def _schedule(driver: EngineDriver) -> list[Instruction]:
    """Schedule a pod with a claim for devices and a claim for a volume, both on the one node."""
    driver.add_nodes("n0")
    devices = (
        device_builders.make_class(),
        make_slice("n0", ["gpu-0"]),
        device_builders.make_claim("c"),
    )
    driver.handle(*(DeviceObjectSeen(each) for each in devices))
    storage = (
        volume_builders.make_class(),
        make_volume("d", where=(HOSTNAME, ["n0"]), version="1"),
        volume_builders.make_claim("data", version="1"),
    )
    driver.handle(*(StorageSeen(each) for each in storage))
    driver.handle(PendingPodSeen(pod_with_claims("p", "c", volumes=(claim_volume("data"),))))
    return driver.schedule()


def test_the_devices_are_written_after_the_volumes_and_before_the_binding() -> None:
    driver = EngineDriver()
    answer = _schedule(driver)
    assert len(of_type(BindVolumes, answer)) == 1
    assert of_type(BindClaims, answer) == []
    driver.handle(VolumesWritten("uid-p", 1, {"d": "2"}, {}, ""))
    given = make_volume("d", where=(HOSTNAME, ["n0"]), version="3", given_to="data")
    bound = volume_builders.make_claim("data", volume="d", version="4")
    answer = driver.handle(StorageSeen(given), StorageSeen(bound))
    assert of_type(BindPod, answer) == []
    (writes,) = of_type(BindClaims, answer)
    claims = tuple(written(writes))
    answer = driver.handle(ClaimsWritten("uid-p", writes.number, claims))
    assert [each.node_name for each in of_type(BindPod, answer)] == ["n0"]
    driver.check_replay()


def test_devices_are_given_back_if_the_pod_is_deleted_during_a_later_write_of_volumes() -> None:
    """The profile writes claims before volumes; the claims are written when the pod is deleted."""
    order = {"preBind": {"enabled": [{"name": "DynamicResources"}, {"name": "VolumeBinding"}]}}
    driver = EngineDriver(partial(default_engine, profile={**DEFAULT_PROFILE, "plugins": order}))
    answer = _schedule(driver)
    assert of_type(BindVolumes, answer) == []
    (writes,) = of_type(BindClaims, answer)
    answer = driver.handle(ClaimsWritten("uid-p", writes.number, tuple(written(writes))))
    assert len(of_type(BindVolumes, answer)) == 1
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    assert list(driver.engine.state.bindings.abandoned_writes) == []
    assert [each.pod.name for each in driver.take(ReleaseClaims)] == ["p"]
