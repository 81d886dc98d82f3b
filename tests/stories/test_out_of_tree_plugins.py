"""Out-of-tree plugins: Permit through the handle, PreBind work, and replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.events import (
    ClaimsWritten,
    DeviceObjectSeen,
    DisruptionBudgetGone,
    NamespaceGone,
    NamespaceSeen,
    PendingPodGone,
    PreBindFinished,
)
from stowage.api.instructions import BindPod, EmitEvent, PatchPodStatus, RunPreBind, StopPreBind
from stowage.api.status import SUCCESS, WAIT, Code, unschedulable
from stowage.framework import EventRegistration, Handle, PluginTraits, PreFilterResult
from stowage.framework.authoring import (
    CycleState,
    FilterVerdict,
    NodeView,
    PodInfo,
    Rejection,
    Snapshot,
    Status,
)
from tests.stories.gang_driver import GangDriver, make_group
from tests.stories.plugin_driver import SCHEDULER, PluginDriver
from tests.support.builders import make_namespace
from tests.support.device_builders import make_claim, with_version
from tests.support.disruption_budgets import db_budget
from tests.support.engines import of_type
from tests.support.models.engine_driver import reference
from tests.support.plugins.scripted_plugin import ScriptedPlugin

POD = reference("p")


class ReleasesOthers:
    """Pods labelled ``wait`` wait at Permit; a pod labelled ``release`` allows all of them."""

    name = "ReleasesOthers"
    traits = PluginTraits()

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        if "release" in pod.labels:
            for waiting in self.handle.waiting_pods():
                self.handle.allow(waiting.pod.uid, self.name)
        return (WAIT if "wait" in pod.labels else SUCCESS), 30.0


class WaitsForClaims:
    """Rejects all pods, and notes the claims that its hint is given."""

    name = "WaitsForClaims"
    traits = PluginTraits()

    def __init__(self) -> None:
        self.told: list[tuple[Any, Any]] = []

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        return PreFilterResult(status=unschedulable("no claim"))

    def events_to_register(self) -> Sequence[EventRegistration]:
        update = ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.UPDATE)
        return (EventRegistration(update, self.after_update),)

    def after_update(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        self.told.append((old, new))
        return QueueingHint.SKIP


class NotesChanges(WaitsForClaims):
    """Rejects all pods, and notes the namespaces and budgets that its hint is given."""

    name = "NotesChanges"

    def events_to_register(self) -> Sequence[EventRegistration]:
        changes = ActionType.UPDATE | ActionType.DELETE
        kinds = (EventResource.NAMESPACE, EventResource.POD_DISRUPTION_BUDGET)
        return [EventRegistration(ClusterEvent(kind, changes), self.after_update) for kind in kinds]


def releasing_driver() -> tuple[PluginDriver, Handle]:
    handle = Handle()
    driver = PluginDriver(ReleasesOthers(handle), handle=handle)
    driver.add_nodes("n")
    return driver, handle


def pre_binding_driver(answer: Status = SUCCESS) -> tuple[PluginDriver, ScriptedPlugin]:
    """A driver with a pod whose PreBind work has been requested."""
    plugin = ScriptedPlugin(answers={"pre_bind_pre_flight": SUCCESS, "pre_bind": answer})
    driver = PluginDriver(plugin)
    driver.add_nodes("n")
    driver.create_pods("p")
    driver.schedule()
    return driver, plugin


def test_permission_by_another_plugin_does_not_release_a_waiting_pod() -> None:
    driver, handle = releasing_driver()
    driver.create_pods("p", labels={"wait": ""})
    driver.schedule()
    handle.allow("uid-p", "Another")
    driver.deliver_requests()
    assert driver.take(BindPod) == []
    assert len(driver.engine.waiting_pods()) == 1


def test_a_plugin_may_release_waiting_pods_while_it_permits_another() -> None:
    driver, _ = releasing_driver()
    driver.create_pods("p", "q", labels={"wait": ""})
    driver.create_pods("last", labels={"release": ""})
    driver.schedule()
    assert [bind.pod.name for bind in driver.take(BindPod)] == ["last"]
    driver.deliver_requests()
    assert [bind.pod.name for bind in driver.take(BindPod)] == ["p", "q"]


def test_permission_for_a_pod_deleted_while_it_waits_is_ignored() -> None:
    driver, handle = releasing_driver()
    driver.create_pods("p", labels={"wait": ""})
    driver.schedule()
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    handle.allow("uid-p", "ReleasesOthers")
    assert driver.deliver_requests() == []
    assert driver.engine.cache_counts()["pods"] == 0


async def test_pre_bind_runs_before_the_binding() -> None:
    driver, plugin = pre_binding_driver()
    assert driver.take(BindPod) == []
    assert driver.take(RunPreBind) == [RunPreBind(POD, "n", SCHEDULER, (plugin.name,), 1)]
    work = driver.engine.pre_bind("uid-p", plugin.name)
    assert work is not None
    assert await work == SUCCESS
    assert plugin.log[-1] == "pre_bind p by Scripted"
    driver.handle(PreBindFinished("uid-p", 1, Code.SUCCESS))
    assert driver.take(BindPod) == [BindPod(POD, "n")]
    assert driver.engine.pre_bind("uid-p", plugin.name) is None


async def test_a_failed_pre_bind_unreserves_and_forgets_the_pod() -> None:
    driver, plugin = pre_binding_driver(unschedulable("no shelf left"))
    work = driver.engine.pre_bind("uid-p", plugin.name)
    assert work is not None
    status = await work
    assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, plugin.name)
    answer = driver.handle(PreBindFinished("uid-p", 1, status.code, status.reasons, status.plugin))
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.message == "no shelf left"
    assert plugin.log[-2:] == ["pre_bind p by Scripted", "unreserve p by Scripted"]
    assert driver.engine.cache_counts()["assumed_pods"] == 0


def test_deleting_a_pod_stops_its_pre_bind_work() -> None:
    driver, plugin = pre_binding_driver()
    answer = driver.handle(PendingPodGone("default", "p", "uid-p"))
    assert of_type(StopPreBind, answer) == [StopPreBind(POD)]
    assert of_type(EmitEvent, answer) == []
    assert driver.engine.pre_bind("uid-p", plugin.name) is None
    assert plugin.log[-1] == "unreserve p by Scripted"
    assert driver.handle(PreBindFinished("uid-p", 1, Code.SUCCESS)) == []


def test_an_unknown_pod_has_no_pre_bind_work() -> None:
    assert PluginDriver().engine.pre_bind("uid-unknown", "Scripted") is None


def test_requests_of_plugins_are_replayed() -> None:
    driver, _ = releasing_driver()
    driver.create_pods("p", "q", labels={"wait": ""})
    driver.create_pods("last", labels={"release": ""})
    driver.schedule()
    driver.deliver_requests()
    driver.check_replay()


def test_a_hint_gets_a_written_claim_as_it_was_and_as_the_api_server_returned_it() -> None:
    plugin = WaitsForClaims()
    driver = PluginDriver(plugin)
    driver.add_nodes("n")
    seen, written = (with_version(make_claim("c"), version) for version in ("1", "2"))
    driver.handle(DeviceObjectSeen(seen))
    driver.create_pods("p")
    driver.schedule()
    driver.handle(ClaimsWritten("uid-other", 1, (written,)))
    assert plugin.told == [(seen, written)]


def test_a_hint_gets_namespaces_as_they_were_and_as_they_are_and_budgets_as_they_are() -> None:
    plugin = NotesChanges()
    driver = PluginDriver(plugin)
    driver.add_nodes("n")
    red, blue = (make_namespace("shop", labels={"team": team}) for team in ("red", "blue"))
    driver.handle(NamespaceSeen(red))
    driver.create_pods("p")
    driver.schedule()
    budget = db_budget(1)
    driver.handle(NamespaceSeen(blue), NamespaceGone("shop"))
    driver.handle(budget, DisruptionBudgetGone("default", "db"))
    teams = [tuple(each.metadata.labels.get("team") for each in pair) for pair in plugin.told[:2]]
    assert teams == [("red", "blue"), ("blue", None)]
    assert {each.metadata.name for pair in plugin.told[:2] for each in pair} == {"shop"}
    assert plugin.told[2:] == [(None, budget.budget), (None, None)]


class KeepsOne:
    """Lets the pod ``p-0`` onto no node but ``r1-0``."""

    name = "KeepsOne"
    traits = PluginTraits(never_needs_pods=True)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        elsewhere = np.array([pod.name == "p-0" and name != "r1-0" for name in nodes.names])
        return FilterVerdict((Rejection("not here", elsewhere),))


def test_a_rejection_that_depends_on_the_name_of_a_member_does_not_hold_for_its_group() -> None:
    driver = GangDriver(plugins=[KeepsOne()])
    for name in ("r1-0", "r2-0", "r2-1"):
        driver.add_nodes(name, cpu="1", labels={"rack": name[:2]})
    driver.show_group(make_group(min_count=2, topology="rack"))
    driver.create_members("p-0", "p-1", "p-2")
    driver.run()
    assert driver.bound() == ["p-1", "p-2"]
