"""The condition of pods that a PreEnqueue plugin gates."""

from __future__ import annotations

from stowage.api.events import PendingPodGone
from stowage.api.instructions import BindPod, PatchPodStatus
from stowage.api.status import SUCCESS, unresolvable
from stowage.framework import PluginTraits
from tests.stories.plugin_driver import PluginDriver
from tests.support.engines import of_type
from tests.support.plugins.scripted_plugin import ScriptedPlugin


class Reporting(ScriptedPlugin):
    """A plugin whose rejections by PreEnqueue are written to the pod's condition."""

    traits = PluginTraits(reports_gated_pods=True)


def _driver(plugin: ScriptedPlugin) -> PluginDriver:
    driver = PluginDriver(plugin)
    driver.add_nodes("n")
    return driver


def _gating(reason: str = "no quota left") -> Reporting:
    return Reporting(answers={"pre_enqueue": unresolvable(reason)})


def test_the_message_of_pre_enqueue_is_written_once_by_the_replica_that_schedules() -> None:
    driver = _driver(_gating())
    # A standby handles events, and its status patches would be dropped.
    assert of_type(PatchPodStatus, driver.create_pods("p")) == []
    assert driver.engine.has_ready_pods()
    (patch,) = of_type(PatchPodStatus, driver.schedule())
    assert (patch.pod.name, patch.reason, patch.message) == (
        "p",
        "SchedulingGated",
        "no quota left",
    )
    assert patch.is_transition
    assert not driver.engine.has_ready_pods()
    driver.create_pods("p")
    assert driver.schedule() == []


def test_another_message_replaces_the_first_and_the_pod_is_scheduled_once_admitted() -> None:
    plugin = _gating()
    driver = _driver(plugin)
    driver.create_pods("p")
    driver.schedule()
    plugin.answers["pre_enqueue"] = unresolvable("quota is being updated")
    driver.create_pods("p", labels={"a": "b"})
    driver.engine.state.queue.activate(["uid-p"], driver.now)
    (patch,) = of_type(PatchPodStatus, driver.schedule())
    assert patch.message == "quota is being updated"
    plugin.answers["pre_enqueue"] = SUCCESS
    driver.engine.state.queue.activate(["uid-p"], driver.now)
    answer = driver.schedule()
    assert len(of_type(BindPod, answer)) == 1
    assert of_type(PatchPodStatus, answer) == []


def test_without_the_trait_no_condition_is_written() -> None:
    driver = _driver(ScriptedPlugin(answers={"pre_enqueue": unresolvable("no quota left")}))
    driver.create_pods("p")
    assert not driver.engine.has_ready_pods()
    assert driver.schedule() == []


def test_the_condition_of_a_pod_with_scheduling_gates_is_left_to_the_api_server() -> None:
    driver = _driver(_gating())
    driver.create_pods("p", gates=["example.com/hold"])
    assert driver.schedule() == []


def test_a_pod_that_is_gone_gets_no_condition() -> None:
    driver = _driver(_gating())
    driver.create_pods("p")
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    assert driver.schedule() == []
