"""CheckNodeCondition and CheckNode{Memory,Disk,PID}Pressure of kube-scheduler 1.12."""

from __future__ import annotations

from functools import partial

import pytest

from stowage.api.cluster_events import ActionType, QueueingHint
from stowage.api.events import NodeSeen
from stowage.api.instructions import BindPod, PatchPodStatus
from stowage.api.objects.meta import Condition
from stowage.api.objects.node import Node, Taint
from stowage.api.objects.pod import Container, PodSpec, ResourceRequirements, Toleration
from stowage.framework import NoArgs
from stowage.plugins.node_conditions import NODE_CONDITION as CONDITION_CHECKS
from stowage.plugins.node_conditions import (
    NodeConditionFilter,
    check_node_condition,
    check_node_disk_pressure,
    check_node_memory_pressure,
    check_node_pid_pressure,
    is_best_effort,
)
from stowage.state import PodInfo
from tests.stories.plugin_driver import PluginDriver
from tests.support.builders import make_node, make_pod
from tests.support.engines import DEFAULT_PROFILE, default_engine
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.models.engine_driver import EngineDriver
from tests.unit.plugins.single_plugin import refused

NODE_CONDITION = check_node_condition(NoArgs())
MEMORY_PRESSURE = check_node_memory_pressure(NoArgs())
DISK_PRESSURE = check_node_disk_pressure(NoArgs())
PID_PRESSURE = check_node_pid_pressure(NoArgs())


def reporting(name: str = "n", *, unschedulable: bool = False, **conditions: str) -> Node:
    """A node that reports these conditions."""
    reported = tuple(Condition(kind, status) for kind, status in conditions.items())
    return make_node(name, unschedulable=unschedulable, conditions=reported)


@pytest.mark.parametrize(
    ("plugin", "node", "want"),
    [
        (NODE_CONDITION, reporting(), ()),
        (NODE_CONDITION, reporting(Ready="True", OutOfDisk="False"), ()),
        (NODE_CONDITION, reporting(Ready="False"), ("node(s) were not ready",)),
        (NODE_CONDITION, reporting(Ready="Unknown"), ("node(s) were not ready",)),
        (NODE_CONDITION, reporting(OutOfDisk="Unknown"), ("node(s) were out of disk space",)),
        (
            NODE_CONDITION,
            reporting(NetworkUnavailable="True"),
            ("node(s) had unavailable network",),
        ),
        (NODE_CONDITION, reporting(unschedulable=True), ("node(s) were unschedulable",)),
        (NODE_CONDITION, reporting(MemoryPressure="True", DiskPressure="True"), ()),
        (MEMORY_PRESSURE, reporting(MemoryPressure="True"), ("node(s) had memory pressure",)),
        (MEMORY_PRESSURE, reporting(MemoryPressure="Unknown"), ()),
        (DISK_PRESSURE, reporting(DiskPressure="True"), ("node(s) had disk pressure",)),
        (DISK_PRESSURE, reporting(DiskPressure="False", Ready="False"), ()),
        (PID_PRESSURE, reporting(PIDPressure="True"), ("node(s) had pid pressure",)),
        (PID_PRESSURE, reporting(PIDPressure="Unknown"), ()),
    ],
)
def test_a_node_is_rejected_by_its_conditions(
    plugin: NodeConditionFilter, node: Node, want: tuple[str, ...]
) -> None:
    found = refused(plugin, MirroredCluster([node]), make_pod("p"))
    assert [status.reasons for status in found.values()] == ([want] if want else [])


def test_every_failed_condition_is_named() -> None:
    node = reporting(unschedulable=True, NetworkUnavailable="True", Ready="False")
    assert refused(NODE_CONDITION, MirroredCluster([node]), make_pod("p"))["n"].reasons == (
        "node(s) were not ready",
        "node(s) had unavailable network",
        "node(s) were unschedulable",
    )


def test_no_toleration_exempts_a_pod_from_a_condition() -> None:
    tolerant = make_pod("p", tolerations=[Toleration(operator="Exists")])
    cluster = MirroredCluster([reporting(unschedulable=True)])
    assert list(refused(NODE_CONDITION, cluster, tolerant)) == ["n"]


def test_memory_pressure_rejects_best_effort_pods_only() -> None:
    cluster = MirroredCluster([reporting("pressed", MemoryPressure="True"), reporting("free")])
    assert list(refused(MEMORY_PRESSURE, cluster, make_pod("p"))) == ["pressed"]
    assert not refused(MEMORY_PRESSURE, cluster, make_pod("p", cpu="1m"))


@pytest.mark.parametrize(
    ("resources", "want"),
    [
        (ResourceRequirements(), True),
        (ResourceRequirements(requests={"cpu": "0"}, limits={"memory": "0"}), True),
        (ResourceRequirements(requests={"example.com/gpu": "1"}), True),
        (ResourceRequirements(requests={"cpu": "1m"}), False),
        (ResourceRequirements(limits={"memory": "1"}), False),
    ],
)
def test_a_pod_without_cpu_and_memory_is_best_effort(
    resources: ResourceRequirements, want: bool
) -> None:
    plain = Container(name="plain")
    assert is_best_effort(PodSpec(containers=(plain, Container(resources=resources)))) is want
    assert is_best_effort(PodSpec(containers=(plain,), resources=resources)) is want
    initial = Container(resources=resources)
    assert is_best_effort(PodSpec(containers=(plain,), init_containers=(initial,)))


def test_only_a_node_that_passes_and_did_not_before_queues_a_pod() -> None:
    pod = MirroredCluster().info(make_pod("p"))
    (registration,) = NODE_CONDITION.events_to_register()
    assert registration.event.action & ActionType.UPDATE_NODE_CONDITION
    hint, good, bad = NODE_CONDITION.after_node_change, reporting(Ready="True"), reporting(Ready="")
    assert hint(pod, None, good) is QueueingHint.QUEUE
    assert hint(pod, bad, good) is QueueingHint.QUEUE
    assert hint(pod, good, good) is QueueingHint.SKIP
    assert hint(pod, None, bad) is QueueingHint.SKIP
    assert hint(pod, bad, reporting(Ready="True", unschedulable=True)) is QueueingHint.SKIP


def test_a_node_that_becomes_ready_gets_the_pod_that_waited() -> None:
    """Answers are kept per class of pods; a changed condition has to renew them."""
    enabled = {"filter": {"enabled": [{"name": "CheckNodeCondition"}]}}
    profile = {**DEFAULT_PROFILE, "plugins": enabled}
    driver = EngineDriver(partial(default_engine, profile=profile))
    driver.handle(NodeSeen(reporting("n", Ready="False")))
    driver.create_pods("p")
    driver.schedule(1)
    (patch,) = driver.take(PatchPodStatus)
    assert patch.message.startswith("0/1 nodes are available: 1 node(s) were not ready.")
    driver.advance(60)
    driver.handle(NodeSeen(reporting("n", Ready="True")))
    driver.schedule(1)
    assert [bind.node_name for bind in driver.take(BindPod)] == ["n"]


class CountsHints(NodeConditionFilter):
    """CheckNodeCondition that counts the calls of its hint."""

    num_hints = 0

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        self.num_hints += 1
        return super().after_node_change(pod, old, new)


def test_the_hint_is_asked_once_for_classes_that_demand_the_same_of_a_node() -> None:
    plugin = CountsHints("CheckNodeCondition", checks=CONDITION_CHECKS)
    driver = PluginDriver(plugin)
    driver.handle(NodeSeen(reporting("n", Ready="False")))
    for name in ("p", "q"):
        driver.create_pods(name, labels={"class": name})
    driver.schedule(2)
    driver.handle(NodeSeen(reporting("n", Ready="Unknown")))
    assert plugin.num_hints == 1


def test_a_tainted_node_that_reports_no_condition_passes() -> None:
    taint = Taint("node.kubernetes.io/not-ready", effect="NoSchedule")
    assert not refused(NODE_CONDITION, MirroredCluster([make_node(taints=[taint])]), make_pod("p"))
