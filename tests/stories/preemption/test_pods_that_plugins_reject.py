"""Preemption for pods that a plugin of the test rejects: the plugin judges what-ifs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from stowage.api.instructions import EvictPod, PatchPodStatus
from stowage.api.status import Code, Status
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    PluginTraits,
    PreFilterResult,
    Rejection,
)
from stowage.state import NodeView, PodInfo, Snapshot
from tests.stories.plugin_driver import full
from tests.stories.preemption.driver import PreemptionDriver, names
from tests.support.engines import of_type
from tests.support.plugins.scripted_plugin import ScriptedPlugin


class Licences:
    """Allows two pods in the whole cluster; counts them at PreFilter or at Filter."""

    name = "Licences"
    traits = PluginTraits()

    def __init__(self, point: str, code: Code) -> None:
        self._point = point
        self._code = code

    def events_to_register(self) -> Sequence[EventRegistration]:
        return ()

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        if self._point == "PreFilter" and self._are_used_up(snapshot):
            return PreFilterResult(Status(self._code, ("no licence left",)))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        if self._point == "PreFilter" or not self._are_used_up(nodes.snapshot):
            return ACCEPT_ALL
        is_final = self._code is not Code.UNSCHEDULABLE
        return FilterVerdict((Rejection("no licence left", np.ones(len(nodes), bool), is_final),))

    @staticmethod
    def _are_used_up(snapshot: Snapshot) -> bool:
        return sum(len(snapshot.pods_on(name)) for name in snapshot.node_names) >= 2


class Fullest:
    """Leaves only the nodes with the most pods, at PreFilter."""

    name = "Fullest"
    traits = PluginTraits()

    def events_to_register(self) -> Sequence[EventRegistration]:
        return ()

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        counts = {name: len(snapshot.pods_on(name)) for name in snapshot.node_names}
        most = max(counts.values())
        return PreFilterResult(
            node_names=frozenset(name for name, count in counts.items() if count == most)
        )

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        return ACCEPT_ALL


@pytest.mark.parametrize("point", ["PreFilter", "Filter"])
@pytest.mark.parametrize(
    ("code", "victims"),
    [(Code.UNSCHEDULABLE, ["b"]), (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [])],
)
def test_the_least_important_pods_that_a_plugin_counts_are_evicted_unless_that_cannot_help(
    point: str, code: Code, victims: list[str]
) -> None:
    driver = PreemptionDriver(plugins=[Licences(point, code)])
    driver.add_nodes("n", cpu="4")
    for name in ("a", "b"):
        driver.show_running(name, "n")
    driver.show_pending("p")
    assert names(of_type(EvictPod, driver.schedule_next())) == victims


def test_nobody_is_evicted_if_a_plugin_rejects_the_pod_without_victims_too() -> None:
    driver = PreemptionDriver(plugins=[full()])
    driver.add_nodes("n", "m")
    driver.show_running("a", "n")
    driver.show_pending("p")
    answer = driver.schedule_next()
    assert of_type(EvictPod, answer) == []
    assert of_type(PatchPodStatus, answer)[0].message.endswith(
        "1 No preemption victims found for incoming pod, 1 full."
    )


@pytest.mark.parametrize("reasons", [("no licence left",), ()])
def test_nobody_is_evicted_for_a_pod_that_pre_filter_rejects_in_any_case(
    reasons: tuple[str, ...],
) -> None:
    never = PreFilterResult(Status(Code.UNSCHEDULABLE, reasons))
    driver = PreemptionDriver(plugins=[ScriptedPlugin(answers={"pre_filter": never})])
    driver.add_nodes("n", cpu="1")
    driver.show_running("a", "n", cpu="1")
    driver.show_pending("p", cpu="1")
    assert of_type(EvictPod, driver.schedule_next()) == []


def test_nobody_is_evicted_from_a_node_that_pre_filter_would_then_leave_out() -> None:
    driver = PreemptionDriver(plugins=[Fullest()])
    driver.add_nodes("n", cpu="2")
    driver.add_nodes("m", cpu="1")
    for name, node, priority in (("a", "n", 0), ("b", "n", 0), ("c", "m", 100)):
        driver.show_running(name, node, cpu="1", priority=priority)
    driver.show_pending("p", cpu="2")
    assert of_type(EvictPod, driver.schedule_next()) == []
