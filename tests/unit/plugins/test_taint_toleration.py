from __future__ import annotations

import pytest

from stowage.api.cluster_events import ActionType, QueueingHint
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Toleration
from stowage.api.status import Code
from stowage.framework import CycleState, NoArgs
from stowage.plugins.taint_toleration import TaintToleration
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.unit.plugins.hints import ask
from tests.unit.plugins.single_plugin import refused

PLUGIN = TaintToleration(NoArgs())


def test_a_node_with_an_untolerated_taint_is_rejected() -> None:
    cluster = MirroredCluster(
        [
            make_node("n0"),
            make_node("n1", taints=[Taint("dedicated", "db", "NoSchedule")]),
            make_node("n2", taints=[Taint("dedicated", "web", "NoExecute")]),
            make_node("n3", taints=[Taint("slow", "", "PreferNoSchedule")]),
        ]
    )
    found = refused(PLUGIN, cluster, make_pod("p"))
    assert sorted(found) == ["n1", "n2"]
    assert found["n1"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert found["n1"].reasons == ("node(s) had untolerated taint(s)",)
    tolerant = make_pod("p", tolerations=[Toleration(key="dedicated", value="db")])
    assert sorted(refused(PLUGIN, cluster, tolerant)) == ["n2"]


def test_nodes_with_fewer_untolerated_prefer_no_schedule_taints_score_higher() -> None:
    prefer = [Taint(key, "", "PreferNoSchedule") for key in ("a", "b", "c")]
    cluster = MirroredCluster(
        [
            make_node("n0"),
            make_node("n1", taints=prefer[:1]),
            make_node("n2", taints=prefer),
        ]
    )
    nodes = existing_nodes(cluster.snapshot())
    pod = cluster.info(make_pod("p", tolerations=[Toleration(key="c", operator="Exists")]))
    raw = PLUGIN.score(CycleState(), pod, nodes)
    assert raw.tolist() == [0, 1, 2]
    assert PLUGIN.normalize_score(CycleState(), pod, nodes, raw).tolist() == [100, 50, 0]


@pytest.mark.parametrize("is_on", [True, False])
def test_numbers_are_compared_with_the_gate_only(is_on: bool) -> None:
    gates = parse_feature_gates([f"TaintTolerationComparisonOperators={str(is_on).lower()}"])
    plugin = TaintToleration(NoArgs(), gates)
    taints = [Taint("sla", "950", "NoSchedule"), Taint("cost", "3", "PreferNoSchedule")]
    cluster = MirroredCluster([make_node("n0"), make_node("n1", taints=taints)])
    pod = make_pod("p", tolerations=[Toleration("sla", "Gt", "900"), Toleration("cost", "Lt", "5")])
    assert list(refused(plugin, cluster, pod)) == ([] if is_on else ["n1"])
    info, nodes = cluster.info(pod), existing_nodes(cluster.snapshot())
    assert plugin.score(CycleState(), info, nodes).tolist() == [0, 0 if is_on else 1]
    answer = ask(plugin, ActionType.ADD, info, None, make_node("n1", taints=taints))
    assert answer is QueueingHint.when(is_on)
    below = [Taint("sla", "800", "NoSchedule")]
    change = make_node("n1", taints=below), make_node("n1", taints=taints)
    answer = ask(plugin, ActionType.UPDATE_NODE_TAINT, info, *change)
    assert answer is QueueingHint.when(is_on)
