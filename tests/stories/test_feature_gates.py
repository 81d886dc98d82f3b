"""Feature gates in their other position: what changes, beside device claims."""

from __future__ import annotations

from functools import partial
from typing import Any

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.types import UtilizationShapePoint
from stowage.api.events import StorageSeen
from stowage.api.instructions import BindPod, BindVolumes, PatchPodStatus
from stowage.api.objects.pod import ResourceRequirements
from stowage.plugins.volumes import ScoringVolumeBindingArgs
from tests.support.builders import ZONE, label_selector
from tests.support.engines import DEFAULT_PROFILE, default_engine
from tests.support.models.engine_driver import EngineDriver
from tests.support.volume_builders import (
    DRIVER,
    claim_volume,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)


def driver_with(gates: str, **options: Any) -> EngineDriver:
    return EngineDriver(partial(default_engine, gates=parse_feature_gates([gates]), **options))


def test_resources_of_a_whole_pod_do_not_count_without_their_gate() -> None:
    whole = ResourceRequirements(requests={"cpu": "3"})
    off = "PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=false"
    for gates, bound in (("", ["n"]), (off, ["n", "n"])):
        driver = driver_with(gates)
        driver.add_nodes("n", cpu="4")
        driver.create_pods("p", "q", cpu="1", resources=whole)
        driver.schedule()
        assert [each.node_name for each in driver.take(BindPod)] == bound
        refused = [each.message for each in driver.take(PatchPodStatus) if each.message]
        assert [("Insufficient cpu" in text) for text in refused] == [True] * (2 - len(bound))


def driver_with_claims(gates: str, *, needed: bool) -> EngineDriver:
    """A node without drivers, a node with one, and a pod with a volume of it; the first wins."""
    driver = driver_with(gates)
    driver.add_nodes("a", "b")
    objects = (
        make_driver(needed=needed),
        make_volume("v", given_to="c"),
        make_claim("c", volume="v"),
        make_csi_node("a", other=1),
        make_csi_node("b", csi_example_com=None),
    )
    driver.handle(*(StorageSeen(each) for each in objects))
    return driver


def bound_with_claim(driver: EngineDriver) -> list[str]:
    driver.create_pods("p", volumes=(claim_volume("c"),))
    driver.schedule()
    return [each.node_name for each in driver.take(BindPod)]


def test_a_driver_that_pods_need_must_be_installed_if_volume_limits_scale() -> None:
    on = "VolumeLimitScaling=true"
    for gates, needed, node in (("", True, "a"), (on, False, "a"), (on, True, "b")):
        assert bound_with_claim(driver_with_claims(gates, needed=needed)) == [node]


def test_a_pod_waits_for_its_driver_and_goes_on_when_it_is_installed_or_not_needed() -> None:
    reason = f"2 {DRIVER} CSI driver is not installed on the node"
    for change in (make_csi_node("a", other=1, csi_example_com=None), make_driver()):
        driver = driver_with_claims("VolumeLimitScaling=true", needed=True)
        driver.handle(StorageSeen(make_csi_node("b")))
        assert bound_with_claim(driver) == []
        assert reason in driver.take(PatchPodStatus)[0].message
        driver.advance(60.0)
        assert driver.schedule() == []
        driver.handle(StorageSeen(change))
        driver.schedule()
        assert [each.node_name for each in driver.take(BindPod)] == ["a"]


def test_a_new_volume_goes_where_it_takes_the_smaller_share_if_storage_is_scored() -> None:
    on = "StorageCapacityScoring=true"
    steep = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    packing = {"pluginConfig": [{"name": "VolumeBinding", "args": {"shape": steep}}]}
    none: dict[str, Any] = {}
    for gates, profile, node in (("", none, "a"), (on, none, "b"), (on, packing, "a")):
        driver = driver_with(gates, profile={**DEFAULT_PROFILE, **profile})
        driver.add_nodes("a", labels={ZONE: "a"})
        driver.add_nodes("b", labels={ZONE: "b"})
        objects = (
            make_class(),
            make_driver(),
            make_claim("c", size="2Gi"),
            make_capacity("small", "3Gi", label_selector({ZONE: "a"})),
            make_capacity("large", "9Gi", label_selector({ZONE: "b"})),
        )
        driver.handle(*(StorageSeen(each) for each in objects))
        driver.create_pods("p", volumes=(claim_volume("c"),))
        driver.schedule()
        assert [each.node_name for each in driver.take(BindVolumes)] == [node]


def test_an_empty_shape_is_the_default_one_and_a_wrong_shape_is_refused() -> None:
    empty = ScoringVolumeBindingArgs(shape=())
    assert list(empty.validate()) == []
    falling = tuple(UtilizationShapePoint(*each) for each in ((50, 0), (20, 11)))
    wrong = ScoringVolumeBindingArgs(bind_timeout_seconds=-1, shape=falling)
    assert [error.path for error in wrong.validate()] == [
        "bindTimeoutSeconds",
        "shape[1].utilization",
        "shape[1].score",
    ]
