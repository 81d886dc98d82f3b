"""A pod group's explanation is what the group cycle of the engine does with its members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.explain_group import explain_group
from stowage.analysis.explain_pod import NotInCluster, explain_pod
from stowage.analysis.group_explanation import GroupExplanation
from stowage.analysis.loaded_cluster import LoadedCluster, load_cluster
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import load_configuration
from stowage.api.instructions import BindPod, EvictPod, PodGroupAttemptResult
from stowage.api.objects.meta import ApiStruct, Condition
from stowage.api.objects.pod import PodSchedulingGate, PodStatus
from stowage.api.objects.pod_groups import PodGroupSchedulingConstraints, PodGroupStatus
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_frameworks
from tests.stories.gang_driver import make_group, make_member
from tests.support.builders import ZONE, make_node, make_pod
from tests.support.clusters import loaded_cluster
from tests.support.engines import configuration_of

GROUP = "default/g"


def with_gates(*gates: str, profile: Mapping[str, Any] | None = None) -> Any:
    """As `loaded_cluster`, with feature gates."""

    def load(*objects: ApiStruct) -> LoadedCluster:
        known = ClusterObjects()
        for obj in objects:
            known.add(obj)
        written = None if profile is None else configuration_of(profile)
        plugins = discover_plugins(gates=parse_feature_gates(gates))
        return load_cluster(known, make_frameworks(load_configuration(written), plugins))

    return load


def nodes(number: int, **fields: Any) -> list[ApiStruct]:
    return [make_node(f"n{index}", **{"cpu": "1", **fields}) for index in range(number)]


def members(number: int, **fields: Any) -> list[ApiStruct]:
    return [make_member(f"p{index}", **fields) for index in range(number)]


@pytest.mark.parametrize("name", ["p0", "p1"])
def test_a_placed_member_counts_itself_in_its_group(name: str) -> None:
    placed = [make_member(f"p{index}", node="n0") for index in range(2)]
    cluster = loaded_cluster(*nodes(2, cpu="2"), make_group(min_count=2), *placed)
    before = cluster.engine.dump()
    explained = explain_pod(cluster, f"default/{name}")
    assert explained.decision.outcome == "Scheduled"
    assert cluster.engine.dump() == before
    cluster.engine.validate()


def ask(cluster: LoadedCluster) -> GroupExplanation:
    """The explanation; the question must leave the engine as it was."""
    before = cluster.engine.dump()
    about = explain_group(cluster, GROUP)
    assert cluster.engine.dump() == before
    assert explain_group(cluster, GROUP) == about
    cluster.engine.validate()
    return about


def states(about: GroupExplanation) -> list[str]:
    return [each.state for each in about.members]


def test_the_member_that_does_not_fit_is_judged_beside_those_that_do() -> None:
    about = ask(loaded_cluster(*nodes(2), make_group(min_count=3), *members(3)))
    assert about.outcome == "Unschedulable"
    assert about.text == (
        "2 of 3 members fit; default/p2 does not: 2 nodes Insufficient cpu; "
        "nearest miss: it fits on 2 nodes if it asked for 1 less cpu"
    )
    assert states(about) == ["Fits", "Fits", "DoesNotFit"]
    assert about.message == "pod group is unschedulable"
    assert about.decision is not None
    assert about.decision.reason_counts == {"Insufficient cpu": 2}
    assert [each.rejected_by is not None for each in about.decision.nodes] == [True, True]


def test_a_gang_that_fits_would_be_bound() -> None:
    about = ask(loaded_cluster(*nodes(3), make_group(min_count=3), *members(3)))
    assert (about.outcome, about.num_fitting, about.misfit) == ("Fits", 3, "")
    assert about.text == "3 of 3 members fit: the scheduler would bind them now"
    assert {each.node for each in about.members} == {"n0", "n1", "n2"}


def test_members_beyond_the_minimum_do_not_hold_a_gang_back() -> None:
    about = ask(loaded_cluster(*nodes(2), make_group(min_count=2), *members(3)))
    assert about.outcome == "Fits"
    assert about.text == "2 of 3 members fit (2 are needed): the scheduler would bind them now"
    assert about.misfit == "default/p2"


def test_an_incomplete_gang_counts_the_pods_that_exist() -> None:
    about = ask(loaded_cluster(*nodes(3), make_group(min_count=3), *members(2)))
    assert (about.outcome, about.text) == ("WaitsForMembers", "2 of 3 members exist")
    assert states(about) == ["Held", "Held"]


def test_pods_of_an_unknown_group_are_held() -> None:
    about = ask(loaded_cluster(*nodes(3), *members(2)))
    assert about.outcome == "WaitsForGroup"
    assert about.text == "the pod group does not exist; pods that name it: 2"


def test_a_group_without_pods_waits_for_them() -> None:
    assert ask(loaded_cluster(make_group(min_count=3))).text == "0 of 3 members exist"
    assert ask(loaded_cluster(make_group())).text == "it has no members"


def test_a_group_that_neither_exists_nor_is_named_is_no_answer() -> None:
    with pytest.raises(NotInCluster, match="there is no pod group default/g"):
        explain_group(loaded_cluster(), GROUP)


def test_a_member_with_a_scheduling_gate_is_named() -> None:
    gated = make_member("p2", scheduling_gates=(PodSchedulingGate("wait"),))
    about = ask(loaded_cluster(*nodes(3), make_group(min_count=3), *members(2), gated))
    assert about.outcome == "Unschedulable"
    assert about.text.startswith("2 of 3 members fit; default/p2 is held: ")
    assert states(about) == ["Fits", "Fits", "Held"]
    only = ask(loaded_cluster(*nodes(3), make_group(), gated))
    assert (only.outcome, states(only)) == ("Held", ["Held"])


def test_bound_members_count_and_late_ones_are_tried() -> None:
    bound = [make_member(f"b{index}", node=f"n{index}") for index in range(2)]
    done = ask(loaded_cluster(*nodes(2), make_group(min_count=2), *bound))
    assert (done.outcome, done.text) == ("Scheduled", "2 of 2 members are scheduled")
    late = ask(loaded_cluster(*nodes(2), make_group(min_count=2), *bound, *members(1)))
    assert (late.outcome, late.num_scheduled, late.misfit) == ("Unschedulable", 2, "default/p0")
    assert states(late) == ["Placed", "Placed", "DoesNotFit"]


def test_each_domain_of_the_topology_key_has_a_verdict() -> None:
    cluster = loaded_cluster(
        make_node("a0", cpu="1", zone="a"),
        make_node("b0", cpu="1", zone="b"),
        make_node("b1", cpu="1", zone="b"),
        make_node("none", cpu="9"),
        make_group(min_count=3, topology=ZONE),
        *members(3),
    )
    about = ask(cluster)
    assert (about.outcome, about.domain) == ("Unschedulable", "b")
    assert [(each.value, each.nodes, each.fits) for each in about.domains] == [
        ("a", 1, 1),
        ("b", 2, 2),
    ]
    assert about.domains[0].message == "default/p1: 1 node Insufficient cpu"
    assert about.text.startswith(f"in {ZONE}=b, 2 of 3 members fit; default/p2 does not: 2 nodes")
    assert about.decision is not None
    assert about.decision.num_nodes == 2
    assert about.decision.preemption is not None
    assert "placement-based" in about.decision.preemption.message


@pytest.mark.parametrize("topology", [ZONE, ""])
def test_constraints_of_the_group_are_named_first_as_what_bars_a_member(topology: str) -> None:
    names = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "GangScheduling")
    load = with_gates(*(f"{name}=true" for name in (*names, "WorkloadAwarePreemption")))
    constraints = PodGroupSchedulingConstraints()
    group = make_group(min_count=2, topology=topology, scheduling_constraints=constraints)
    about = ask(load(make_node("a0", cpu="1", zone="a"), group, *members(2)))
    assert about.decision is not None
    assert about.decision.preemption is not None
    assert "placement-based" in about.decision.preemption.message


def test_the_domain_in_which_the_gang_fits_is_chosen() -> None:
    cluster = loaded_cluster(
        make_node("a0", cpu="1", zone="a"),
        make_node("b0", cpu="2", zone="b"),
        make_group(min_count=2, topology=ZONE),
        *members(2),
    )
    about = ask(cluster)
    assert (about.outcome, about.domain) == ("Fits", "b")
    assert [each.outcome for each in about.domains] == ["Unschedulable", "Fits"]


def test_a_cluster_without_the_label_has_no_domain() -> None:
    about = ask(loaded_cluster(*nodes(1), make_group(min_count=1, topology="rack"), *members(1)))
    assert about.text == "no feasible placements found: no domain of rack"
    assert states(about) == ["Untried"]


def test_victims_of_members_are_named_and_nothing_is_evicted() -> None:
    low = [make_pod(f"low{index}", cpu="1", node=f"n{index}", priority=1) for index in range(2)]
    group = make_group(min_count=2)
    about = ask(loaded_cluster(*nodes(2), *low, group, *members(2, priority=9)))
    assert about.outcome == "WaitsForPreemption"
    assert about.victims == ("default/low0", "default/low1")
    assert about.text == "0 of 2 members fit without preemption; the group evicts 2 pods"
    assert states(about) == ["NeedsPreemption", "NeedsPreemption"]


def test_workload_aware_preemption_is_by_the_priority_of_the_group() -> None:
    load = with_gates("GenericWorkload=true", "GangScheduling=true", "WorkloadAwarePreemption=true")
    low = [make_pod(f"low{index}", cpu="1", node=f"n{index}", priority=1) for index in range(2)]
    evicts = ask(load(*nodes(2), *low, make_group(min_count=2, priority=9), *members(2)))
    assert (evicts.outcome, len(evicts.victims)) == ("WaitsForPreemption", 2)
    keeps = ask(load(*nodes(2), *low, make_group(min_count=2), *members(2, priority=9)))
    assert keeps.outcome == "Unschedulable"
    assert keeps.preemption == "No preemption victims found for incoming preemptor"


def test_a_group_that_may_not_preempt_is_told_why() -> None:
    gates = ("GenericWorkload=true", "GangScheduling=true", "WorkloadAwarePreemption=true")
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}},
    }
    load = with_gates(*gates, profile=profile)
    low = make_pod("low", cpu="1", node="n0", priority=1)
    about = ask(load(*nodes(1), low, make_group(min_count=1, priority=9), *members(1)))
    assert about.outcome == "Unschedulable"
    assert about.preemption.startswith("default preemption plugin is not registered")


def test_members_are_ordinary_pods_if_the_gate_is_off() -> None:
    cluster = with_gates("GenericWorkload=false")(*nodes(2), make_group(min_count=3), *members(3))
    about = ask(cluster)
    assert about.outcome == "OneByOne"
    assert about.text.startswith("the feature gate GenericWorkload is false")
    assert explain_pod(cluster, "default/p0").group is None


def test_members_of_several_schedulers_are_an_error() -> None:
    other = make_member("p1", scheduler_name="other")
    about = ask(loaded_cluster(*nodes(2), make_group(min_count=2), *members(1), other))
    assert about.outcome == "Error"
    assert "should have the same .spec.schedulerName" in about.text


def test_the_condition_and_the_nomination_in_the_cluster_are_repeated() -> None:
    group = make_group(min_count=3)
    said = Condition(type="PodGroupScheduled", status="False", message="said before")
    group = replace(group, status=PodGroupStatus((said,)))
    waiting = replace(make_member("p2"), status=PodStatus(nominated_node_name="n1"))
    about = ask(loaded_cluster(*nodes(2), group, *members(2), waiting))
    assert about.condition == "said before"
    (note,) = about.notes
    assert note.startswith("default/p2 is nominated to n1: it waits there at Permit")


def test_a_member_is_explained_beside_the_members_before_it() -> None:
    cluster = loaded_cluster(*nodes(2), make_group(min_count=3), *members(3))
    before = cluster.engine.dump()
    fits, lacks = explain_pod(cluster, "default/p0"), explain_pod(cluster, "default/p2")
    assert (fits.decision.outcome, lacks.decision.outcome) == ("Scheduled", "Unschedulable")
    assert lacks.decision.reason_counts == {"Insufficient cpu": 2}
    assert fits.group is not None
    assert fits.group.outcome == "Unschedulable"
    assert fits.group.text.startswith("2 of 3 members fit; default/p2 does not")
    assert cluster.engine.dump() == before


def test_a_held_member_is_explained_with_its_group() -> None:
    cluster = loaded_cluster(*nodes(2), make_group(min_count=3), *members(2))
    explained = explain_pod(cluster, "default/p0")
    assert explained.decision.outcome == "Gated"
    assert explained.group is not None
    assert explained.group.text == "2 of 3 members exist"


@st.composite
def clusters(draw: st.DrawFn) -> list[ApiStruct]:
    """A group with members of several sizes and priorities, pods to evict, and nodes in zones."""
    sizes = st.sampled_from(["1", "2", "3"])
    made: list[ApiStruct] = []
    for index in range(draw(st.integers(1, 4))):
        zone = draw(st.sampled_from(["a", "b", None]))
        made.append(make_node(f"n{index}", cpu=draw(sizes), zone=zone))
        if draw(st.booleans()):
            made.append(make_pod(f"low{index}", cpu="1", node=f"n{index}", priority=-1))
    topology = draw(st.sampled_from(["", ZONE]))
    made.append(make_group(min_count=draw(st.integers(1, 4)), topology=topology))
    # Different priorities: the order of members of one priority is arbitrary.
    priorities = draw(st.permutations(range(draw(st.integers(1, 4)))))
    for index, priority in enumerate(priorities):
        made.append(make_member(f"p{index}", cpu=draw(sizes), priority=priority))
    return made


@given(clusters())
def test_the_answer_is_what_the_engine_does_next(objects: list[ApiStruct]) -> None:
    cluster = loaded_cluster(*objects)
    about = ask(cluster)
    done = cluster.engine.schedule(0.0, 1)
    results = [each for each in done if isinstance(each, PodGroupAttemptResult)]
    if about.outcome == "WaitsForMembers":
        assert results == []
        return
    (result,) = results
    expected = {
        "Fits": "scheduled",
        "WaitsForPreemption": "waiting_on_preemption",
        "Unschedulable": "unschedulable",
    }
    assert result.result == expected[about.outcome]
    assert result.message == about.message
    bound = {each.pod.key: each.node_name for each in done if isinstance(each, BindPod)}
    fitting = {each.pod: each.node for each in about.members if each.state == "Fits"}
    assert bound == (fitting if about.outcome == "Fits" else {})
    evicted = {each.victim.key for each in done if isinstance(each, EvictPod)}
    assert evicted == set(about.victims)


def test_a_member_that_waits_for_others_names_the_event_of_the_next_pod() -> None:
    cluster = loaded_cluster(*nodes(1), make_group(min_count=2), make_member("p0"))
    (waits,) = explain_pod(cluster, "default/p0").decision.waits_for
    assert waits.plugin == "GangScheduling"
    assert {"UnschedulablePodAdd", "scheduling.k8s.io/PodGroupUpdate"} <= set(waits.events)
