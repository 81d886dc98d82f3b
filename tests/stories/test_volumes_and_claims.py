"""A pod with a volume and a claim for devices is bound when both are written."""

from __future__ import annotations

from stowage.api.events import (
    ClaimsWritten,
    DeviceObjectSeen,
    PendingPodSeen,
    StorageSeen,
    VolumesWritten,
)
from stowage.api.instructions import BindClaims, BindPod, BindVolumes
from tests.stories.claim_driver import written
from tests.support import device_builders, volume_builders
from tests.support.builders import HOSTNAME
from tests.support.device_builders import make_slice, pod_with_claims
from tests.support.engines import of_type
from tests.support.models.engine_driver import EngineDriver
from tests.support.volume_builders import claim_volume, make_volume


def test_the_devices_are_written_after_the_volumes_and_before_the_binding() -> None:
    driver = EngineDriver()
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
    answer = driver.schedule()
    assert len(of_type(BindVolumes, answer)) == 1
    assert of_type(BindClaims, answer) == []
    driver.handle(VolumesWritten("uid-p", {"d": "2"}, {}, ""))
    given = make_volume("d", where=(HOSTNAME, ["n0"]), version="3", given_to="data")
    bound = volume_builders.make_claim("data", volume="d", version="4")
    answer = driver.handle(StorageSeen(given), StorageSeen(bound))
    assert of_type(BindPod, answer) == []
    (writes,) = of_type(BindClaims, answer)
    claims = tuple(written(writes))
    answer = driver.handle(ClaimsWritten("uid-p", writes.number, claims))
    assert [each.node_name for each in of_type(BindPod, answer)] == ["n0"]
    driver.check_replay()
