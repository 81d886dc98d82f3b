from __future__ import annotations

import msgspec
import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Toleration, TopologySpreadConstraint
from stowage.framework import ExtensionPoint, Framework, build_profile
from stowage.framework.extension_points import FilterPlugin
from stowage.framework.runtime.row_filter import judges_rows
from stowage.plugins import in_tree_registry
from tests.support.builders import ZONE, label_selector, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.unit.plugins.single_plugin import refused

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
NODE_ALLOCATABLE = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE)
POD_DELETED = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
POD_SHRUNK = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN)
OWN_TOLERATION = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE_POD_TOLERATION)
OWN_GATES = ClusterEvent(
    EventResource.UNSCHEDULED_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
)
EVENTS = {
    "NODE_ADD": NODE_ADD,
    "NODE_LABEL": NODE_LABEL,
    "NODE_TAINT": NODE_TAINT,
    "NODE_ALLOCATABLE": NODE_ALLOCATABLE,
    "POD_DELETED": POD_DELETED,
    "POD_SHRUNK": POD_SHRUNK,
    "OWN_TOLERATION": OWN_TOLERATION,
    "OWN_GATES": OWN_GATES,
}


def test_every_plugin_is_registered_under_its_own_name() -> None:
    registry = in_tree_registry()
    for name, factory in registry.items():
        assert factory.construct(factory.args()).name == name


def test_every_in_tree_filter_plugin_evaluates_many_what_ifs_at_once() -> None:
    registry = in_tree_registry()
    plugins = build_profile(msgspec.convert({}, KubeSchedulerProfile), registry).plugins
    asked = [each for each in plugins[ExtensionPoint.FILTER] if isinstance(each, FilterPlugin)]
    assert len(asked) == len(plugins[ExtensionPoint.FILTER])
    assert {"VolumeRestrictions", "NodeVolumeLimits"} <= {plugin.name for plugin in asked}
    assert [plugin.name for plugin in asked if not judges_rows(plugin)] == []


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        ("SchedulingGates", {"OWN_GATES"}),
        ("NodeUnschedulable", {"NODE_ADD", "NODE_TAINT", "OWN_TOLERATION"}),
        ("NodeName", {"NODE_ADD", "NODE_TAINT"}),
        ("TaintToleration", {"NODE_ADD", "NODE_TAINT", "OWN_TOLERATION"}),
        ("NodeAffinity", {"NODE_ADD", "NODE_TAINT", "NODE_LABEL"}),
        ("NodePorts", {"NODE_ADD", "NODE_TAINT", "POD_DELETED"}),
        (
            "NodeResourcesFit",
            {"NODE_ADD", "NODE_TAINT", "NODE_ALLOCATABLE", "POD_DELETED", "POD_SHRUNK"},
        ),
        ("VolumeZone", {"NODE_ADD", "NODE_TAINT", "NODE_LABEL"}),
    ],
)
def test_each_in_tree_plugin_registers_its_events(plugin: str, want: set[str]) -> None:
    framework = Framework(build_profile(KubeSchedulerProfile(), in_tree_registry()))
    registered = framework.events_by_plugin[plugin]
    events = {
        name
        for name, event in EVENTS.items()
        if any(registration.event.matches(event) for registration in registered)
    }
    assert events == want


@pytest.mark.parametrize("is_on", [True, False])
def test_plugins_of_the_registry_obey_its_feature_gates(is_on: bool) -> None:
    setting = str(is_on).lower()
    registry = in_tree_registry(
        parse_feature_gates([f"TaintTolerationComparisonOperators={setting}"])
    )
    taints = [Taint("sla", "950", "NoSchedule")]
    nodes = [make_node("a", labels={ZONE: "a"}), make_node("b", labels={ZONE: "b"}, taints=taints)]
    cluster = MirroredCluster(nodes, [make_pod("w", labels={"app": "web"}, node="a")])
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=label_selector({"app": "web"}),
        node_taints_policy="Honor",
    )
    pod = make_pod(
        "p",
        labels={"app": "web"},
        tolerations=[Toleration("sla", "Gt", "900")],
        topology_spread_constraints=[constraint],
    )

    def refused_by(name: str) -> list[str]:
        factory = registry[name]
        plugin = factory.construct(factory.args())
        assert isinstance(plugin, FilterPlugin)
        return list(refused(plugin, cluster, pod))

    assert refused_by("TaintToleration") == ([] if is_on else ["b"])
    # Only a node that tolerates the pod is another domain, over which it has to be spread.
    assert refused_by("PodTopologySpread") == (["a"] if is_on else [])
