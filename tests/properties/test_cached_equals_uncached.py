"""After any changes, kept answers equal answers computed without the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.config.types import (
    KubeSchedulerProfile,
    PluginConfig,
    PluginSet,
    PluginSets,
    PluginSetting,
)
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Affinity, Pod, PodAffinity, TopologySpreadConstraint
from stowage.engine.scheduling import (
    RefusalCache,
    Scheduled,
    SchedulingRequest,
    TieBreaker,
    Unschedulable,
    schedule_pod,
)
from stowage.framework import CycleState, Framework, build_profile
from stowage.plugins import in_tree_registry
from stowage.plugins.node_resources.fit import NodeResourcesFit
from stowage.state import NodeView, PodInfo, Snapshot
from tests.support.builders import HOSTNAME, affinity_term, label_selector, make_node, make_pod
from tests.support.generators import placement_strategies as some
from tests.support.mirrored_cluster import MirroredCluster, on_node
from tests.support.volume_builders import claim_volume, make_claim, make_volume

Step = tuple[list[some.Change], int, int]

#: So many unchanged nodes that the changed ones are a small share: the cache updates in place.
_QUIET_NODES = [make_node(f"quiet{index}", cpu="4", memory="4Gi") for index in range(40)]
histories = st.lists(
    st.tuples(st.lists(some.changes, max_size=3), st.integers(0, 2), st.integers(0, 3)),
    min_size=2,
    max_size=8,
)


_DEFAULT_PROFILE = KubeSchedulerProfile()
#: With the plugins of kube-scheduler 1.12 whose answers are kept.
_PROFILE_OF_1_12 = KubeSchedulerProfile(
    plugins=PluginSets(
        multi_point=PluginSet(
            enabled=tuple(
                PluginSetting(name)
                for name in (
                    "CheckNodeCondition",
                    "CheckNodeMemoryPressure",
                    "CheckNodeDiskPressure",
                    "CheckNodePIDPressure",
                    "MaxEBSVolumeCount",
                    "MaxGCEPDVolumeCount",
                    "MaxAzureDiskVolumeCount",
                    "MaxCSIVolumeCount",
                    "LeastRequestedPriority",
                    "MostRequestedPriority",
                    "BalancedResourceAllocation",
                    "RequestedToCapacityRatioPriority",
                    "ImageLocalityPriority",
                    "InterPodAffinityPriority",
                    "NodeAffinityPriority",
                    "TaintTolerationPriority",
                    "ResourceLimitsPriority",
                    "NodeLabel",
                    "ServiceAffinity",
                    "SelectorSpread",
                    "NodePreferAvoidPods",
                    "EqualPriority",
                )
            )
        )
    ),
    plugin_config=(
        PluginConfig("NodeLabel", {"absentLabels": ["cores"], "presentLabelsPreference": ["disk"]}),
    ),
)


def _framework(
    class_cache_size: int, profile: KubeSchedulerProfile = _DEFAULT_PROFILE
) -> Framework:
    built = build_profile(profile, in_tree_registry())
    return Framework(built, class_cache_size=class_cache_size)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(some.nodes(), max_size=4),
    st.lists(some.pods(), min_size=3, max_size=3),
    histories,
    st.sampled_from((1, 100)),
    st.sampled_from((_DEFAULT_PROFILE, _PROFILE_OF_1_12)),
)
def test_decisions_are_equal_with_and_without_the_cache(
    first_nodes: list[Node],
    templates: list[Pod],
    history: Sequence[Step],
    size: int,
    profile: KubeSchedulerProfile,
) -> None:
    """Pods of three node demands, each in a few classes, are scheduled again and again.

    Meanwhile nodes and other pods are added and removed.
    """
    cluster = MirroredCluster([*_QUIET_NODES, *first_nodes])
    cached, uncached = _framework(size, profile), _framework(0, profile)
    refusals = RefusalCache()
    for happened, which, disguise in history:
        for change in happened:
            change(cluster)
        template = _with_other_class(templates[which], disguise)
        pod = cluster.info(template)
        snapshot = cluster.snapshot()
        got = _decide(cached, snapshot, pod, refusals)
        assert got == _decide(uncached, snapshot, pod)
        assert got == _decide(cached, snapshot, pod, refusals)
        assert got == _decide(uncached, snapshot, pod)
        assert cached.evaluations.totals() == uncached.evaluations.totals()
        placed = got.get("node")
        if isinstance(placed, str) and pod.uid not in cluster.plain.pods:
            cluster.update_pod(on_node(template, placed))


def _with_other_class(pod: Pod, disguise: int) -> Pod:
    """A pod with the same node demand, but of another class."""
    labels = {**pod.metadata.labels, "disguise": str(disguise)}
    meta = {"labels": labels, "name": f"{pod.metadata.name}-{disguise}"}
    spec = pod.spec
    if disguise == 1:
        meta["namespace"] = "elsewhere"
    if disguise == 2:
        apart = PodAffinity((affinity_term(HOSTNAME, label_selector({"disguise": "2"})),))
        affinity = msgspec.structs.replace(spec.affinity or Affinity(), pod_anti_affinity=apart)
        spec = msgspec.structs.replace(spec, affinity=affinity)
    if disguise == 3:
        spread = TopologySpreadConstraint(
            max_skew=1,
            topology_key=HOSTNAME,
            when_unsatisfiable="ScheduleAnyway",
            label_selector=label_selector({"disguise": "3"}),
        )
        spec = msgspec.structs.replace(spec, topology_spread_constraints=(spread,))
    uid = f"{pod.metadata.uid}-{disguise}"
    metadata = msgspec.structs.replace(pod.metadata, uid=uid, **meta)
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


@pytest.fixture
def rows_filtered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of nodes that each call of NodeResourcesFit's Filter computes."""
    usual, rows = NodeResourcesFit.filter, []

    def filter_and_count(self: Any, state: CycleState, pod: PodInfo, nodes: NodeView) -> Any:
        rows.append(len(nodes))
        return usual(self, state, pod, nodes)

    monkeypatch.setattr(NodeResourcesFit, "filter", filter_and_count)
    return rows


def test_only_changed_nodes_are_filtered_again(rows_filtered: list[int]) -> None:
    """Without a cache the property above would hold trivially."""
    cluster = MirroredCluster(_QUIET_NODES)
    cached = _framework(100)
    pod = cluster.info(make_pod("p", requests={"cpu": "1"}))
    _decide(cached, cluster.snapshot(), pod)
    cluster.bind(make_pod("q", requests={"cpu": "4"}), "quiet7")
    decision = _decide(cached, cluster.snapshot(), pod)
    assert decision["feasible"] == [f"quiet{index}" for index in range(40) if index != 7]
    assert rows_filtered == [len(cluster.snapshot().node_names), 1]


def test_classes_of_one_demand_share_cached_answers(rows_filtered: list[int]) -> None:
    """The caches of filters and scores do not grow with the number of labels."""
    cluster = MirroredCluster(_QUIET_NODES)
    cached = _framework(100)
    template = make_pod("p", requests={"cpu": "1"})
    pods = [cluster.info(_with_other_class(template, disguise)) for disguise in range(4)]
    for pod in pods:
        _decide(cached, cluster.snapshot(), pod)
    assert len({pod.pod_class.id for pod in pods}) == 4
    assert len(rows_filtered) == 1


def _decide(
    framework: Framework,
    snapshot: Snapshot,
    pod: PodInfo,
    refusals: RefusalCache | None = None,
) -> dict[str, object]:
    ties = TieBreaker(lambda _: 0)
    result = schedule_pod(SchedulingRequest(framework, snapshot, pod, CycleState(), ties), refusals)
    if isinstance(result, Unschedulable):
        return {
            "message": result.message,
            "dice": ties.sizes,
            "nomination": result.nominated_node_name,
            "plugins": result.unschedulable_plugins,
            "resolvable": result.diagnosis.resolvable(snapshot).nonzero()[0].tolist(),
        }
    assert isinstance(result, Scheduled)
    feasible = result.feasible
    decision: dict[str, object] = {
        "node": result.node_name,
        "evaluated": result.evaluated_nodes,
        "feasible": [snapshot.node_names[row] for row in feasible.rows.tolist()],
    }
    if result.scores is not None:
        decision["total"] = result.scores.total.tolist()
        weighted = sum(each.weighted for each in result.scores.per_plugin())
        assert decision["total"] == weighted.tolist()  # type: ignore[union-attr]
    return decision


def test_pods_of_one_class_with_different_claims_get_different_answers() -> None:
    """Kept answers of a class do not depend on claims, which are not part of the class."""
    cluster = MirroredCluster(_QUIET_NODES)
    cached = _framework(100)
    for index in (3, 7):
        where = (HOSTNAME, [f"quiet{index}"])
        volume = make_volume(f"d{index}", given_to=f"c{index}", where=where)
        cluster.update_storage(volume, make_claim(f"c{index}", volume=f"d{index}"))
    pods = [
        cluster.info(make_pod(f"p{index}", volumes=(claim_volume(f"c{index}"),)))
        for index in (3, 7)
    ]
    assert pods[0].pod_class is pods[1].pod_class
    feasible = [_decide(cached, cluster.snapshot(), pod)["feasible"] for pod in pods]
    assert feasible == [["quiet3"], ["quiet7"]]
