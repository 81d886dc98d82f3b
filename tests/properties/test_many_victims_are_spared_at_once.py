"""A group that spares many possible victims at once evicts whom it evicts one by one."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.events import DeviceObjectSeen
from stowage.api.instructions import EvictPod
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import (
    Affinity,
    PodAffinity,
    PodSchedulingGroup,
    TopologySpreadConstraint,
)
from stowage.engine.pod_groups import group_preemption
from stowage.engine.pod_groups.placements import try_group
from tests.stories.gang_driver import GangDriver, make_group
from tests.support.builders import HOSTNAME, affinity_term, label_selector, make_pod
from tests.support.device_builders import Json, device, make_class, make_slice

ON = parse_feature_gates(["GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"])
#: Node: (cpus, whether it is tainted, its pods: (cpus, priority, group, anti-affinity)).
Node: TypeAlias = tuple[int, bool, list[tuple[int, int, int, bool]]]

_pods = st.tuples(
    st.integers(1, 2),
    st.integers(0, 3),
    st.sampled_from([0, 0, 0, 1, 2]),
    st.sampled_from([False] * 9 + [True]),
)
_nodes = st.lists(
    st.tuples(
        st.integers(2, 6), st.sampled_from([False, False, True]), st.lists(_pods, max_size=4)
    ),
    min_size=1,
    max_size=5,
)
_MEMBERS = label_selector({"app": "gang"})
_ANTI = Affinity(pod_anti_affinity=PodAffinity((affinity_term(HOSTNAME, _MEMBERS),)))
_LOW = {"app": "low"}
_BESIDE_LOW = TopologySpreadConstraint(1, HOSTNAME, "DoNotSchedule", label_selector(_LOW))
_SORTS: tuple[dict[str, Any], ...] = (
    {"cpu": "1"},
    {"cpu": "2"},
    {"cpu": "1", "host_ports": [80]},
    # A node takes such a member if others have more low pods: then sparing helps.
    {"cpu": "1", "topology_spread_constraints": (_BESIDE_LOW,)},
)


def _evicted(nodes: list[Node], sorts: list[int], least: int) -> tuple[list[str], list[str]]:
    """The victims, and the nominated nodes of the members, after one attempt of the group."""
    driver = GangDriver(gates=ON)
    for group in (1, 2):
        whole = make_group(f"low-{group}", disruption_mode="PodGroup", priority=2)
        driver.show_group(whole)
    for index, (cpus, is_tainted, pods) in enumerate(nodes):
        taints = [Taint("k", "", "NoSchedule")] if is_tainted else []
        driver.add_nodes(f"n-{index}", cpu=str(cpus), taints=taints)
        for number, (cpu, priority, group, is_averse) in enumerate(pods):
            fields: dict[str, Any] = {"affinity": _ANTI} if is_averse else {}
            fields["labels"] = _LOW
            if group:
                fields["scheduling_group"] = PodSchedulingGroup(f"low-{group}")
            name = f"low-{index}-{number}"
            pod = make_pod(name, cpu=str(cpu), priority=priority, node=f"n-{index}", **fields)
            driver.show(pod)
    driver.show_group(make_group(min_count=min(least, len(sorts)), priority=100))
    for number, sort in enumerate(sorts):
        labels = {"app": "gang"}
        driver.create_members(f"p-{number}", priority=100, labels=labels, **_SORTS[sort])
    driver.schedule()
    driver.engine.validate()
    evictions = sorted(each.victim.name for each in driver.take(EvictPod))
    nominated = [
        driver.engine.state.queue.nominator.node_of(f"uid-p-{number}") or ""
        for number in range(len(sorts))
    ]
    return evictions, nominated


@settings(max_examples=250, deadline=None)
@given(
    nodes=_nodes,
    sorts=st.lists(st.integers(0, 3), min_size=1, max_size=2).flatmap(
        lambda kinds: st.lists(st.sampled_from(kinds), min_size=1, max_size=5)
    ),
    least=st.integers(1, 5),
)
def test_the_same_pods_are_evicted_as_one_by_one(
    nodes: list[Node], sorts: list[int], least: int
) -> None:
    found = _evicted(nodes, sorts, least)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_preemption, "_spares_many", lambda *_: False)
        assert found == _evicted(nodes, sorts, least)


def _evicted_for_devices() -> list[str]:
    """The victims of two members that need a device each, which several nodes can use.

    Which device the first one takes depends on its node, and so does what is left for the second.
    """
    driver = GangDriver(gates=ON)
    for node, cpu in (("n0", "2"), ("n1", "2"), ("n2", "3")):
        driver.add_nodes(node, cpu=cpu, labels={"at": node})
    running = "n2 1, n0 200m, n1 1, n1 200m, n0 500m, n0 500m, n1 200m, n1 1, n1 200m"
    for number, (node, cpu) in enumerate(each.split() for each in running.split(", ")):
        driver.show(make_pod(f"low-{number}", cpu=cpu, node=node, priority=-1 - number))
    devices = [
        device(f"d{number}", nodeSelector={"nodeSelectorTerms": [_at(nodes)]})
        for number, nodes in enumerate((["n1"], ["n0", "n1", "n2"], ["n0", "n1"], ["n1"]))
    ]
    objects = (
        make_class(resource="example.com/gpu"),
        make_slice("pool", devices, perDeviceNodeSelection=True),
    )
    driver.handle(*(DeviceObjectSeen(each) for each in objects))
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1", requests={"example.com/gpu": "1"})
    driver.schedule()
    return sorted(driver.evicted)


def _at(nodes: list[str]) -> Json:
    return {"matchExpressions": [{"key": "at", "operator": "In", "values": nodes}]}


def test_members_that_need_extended_resources_of_devices_spare_pods_one_by_one() -> None:
    found = _evicted_for_devices()
    assert found
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_preemption, "_spares_many", lambda *_: False)
        assert found == _evicted_for_devices()


def test_a_gang_in_a_large_full_cluster_tries_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def counting(*arguments: Any) -> Any:
        tried.append(1)
        return try_group(*arguments)

    monkeypatch.setattr(f"{group_preemption.__name__}.try_group", counting)
    nodes: list[Node] = [(2, False, [(1, 0, 0, False), (1, 0, 0, False)]) for _ in range(100)]
    evicted, nominated = _evicted(nodes, [1, 1], 2)
    assert len(evicted) == 4
    assert len(set(nominated)) == 2
    assert len(tried) < 50  # of 200 possible victims


def test_where_sparing_a_pod_may_let_members_in_pods_are_spared_one_by_one() -> None:
    """Spared alone, the second pod of n-1 would keep members away, but not beside that of n-0."""
    nodes: list[Node] = [
        (1, False, [(1, 1, 0, False)]),
        (5, False, [(1, 3, 0, False), (1, 2, 0, False), (1, 0, 0, False)]),
    ]
    evicted, _ = _evicted(nodes, [3, 3], 2)
    assert evicted == ["low-1-1"]
