"""Feature gates in their other position: what changes, beside device claims."""

from __future__ import annotations

from functools import partial

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.instructions import BindPod, PatchPodStatus
from stowage.api.objects.pod import ResourceRequirements
from tests.support.engines import default_engine
from tests.support.models.engine_driver import EngineDriver


def driver_with(gates: str) -> EngineDriver:
    return EngineDriver(partial(default_engine, gates=parse_feature_gates([gates])))


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
